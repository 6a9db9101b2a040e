package problems_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A built-in problem is looked up by name. With changes its parameters, and Make builds it on a grid.
func ExampleLookup() {
	b, err := problems.Lookup("torsion")
	if err != nil {
		panic(err)
	}
	if b, err = b.With([]string{"c=10"}); err != nil {
		panic(err)
	}
	n, err := problems.Grid(b.Dimension, []int{31})
	if err != nil {
		panic(err)
	}
	p, err := b.Make(n)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.N, p.Source.Value, p.Upper(problem.Point{0.25, 0.5}))
	// Output: [31 31 1] 10 0.25
}

// A raster turns an array into a function. Between nodes the function is linear along each axis.
func ExampleRaster() {
	heights := []float64{0, 1, 4, 9}
	f, err := problems.Raster{
		Hi:   problem.Point{3},
		Size: [3]int{4, 1, 1},
		Node: func(i int) float64 { return heights[i] },
	}.Function()
	if err != nil {
		panic(err)
	}
	fmt.Println(f(problem.Point{2}), f(problem.Point{2.5}))
	// Output: 4 6.5
}

// A problem of the user's own is added to the catalog and then found by its name.
func ExampleCatalog() {
	c := problems.Builtins()
	step := problems.Builtin{Name: "step", Summary: "a membrane over a step", Dimension: 1}
	err := c.Add(step, func(p *problem.Problem, _ []float64) error {
		p.Hi[0] = 1
		p.Obstacle = func(q problem.Point) float64 { return min(0, 0.2-q[0]) }
		p.Boundary = func(problem.Point) float64 { return 0 }
		return nil
	})
	if err != nil {
		panic(err)
	}
	b, err := c.Lookup("step")
	if err != nil {
		panic(err)
	}
	fmt.Println(b.Summary)
	// Output: a membrane over a step
}
