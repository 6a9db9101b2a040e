package catalog_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// dome is a membrane that a paraboloid holds up.
func dome(p *problem.Problem, _ []float64) error {
	p.Lo, p.Hi = problem.Point{-1, -1}, problem.Point{1, 1}
	p.Obstacle = func(q problem.Point) float64 { return 0.5 - 2*(q[0]*q[0]+q[1]*q[1]) }
	p.Boundary = func(problem.Point) float64 { return 0 }
	return nil
}

// newPairs returns a scheme that is synchronous within pairs of ranks and asynchronous between them.
func newPairs(_ string, clusters []int) (iterate.Scheme, error) {
	pairs := make([]int, len(clusters))
	for rank := range pairs {
		pairs[rank] = rank / 2
	}
	return iterate.Hybrid(pairs), nil
}

// A problem and a scheme are added to those of this module. Flags then accept their names.
func ExampleSet() {
	c := catalog.New()
	if err := c.Problems.Add(problems.Builtin{Name: "dome", Dimension: 2}, dome); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Schemes.Add("pairs", "synchronous in pairs", newPairs); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Schemes.Names())
	s, err := c.Scheme("pairs", []string{"", "", "", ""})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("1 and 2 asynchronous:", s.Between(1, 2).Asynchronous())
	fmt.Println("2 and 3 asynchronous:", s.Between(2, 3).Asynchronous())
	b, err := c.Problems.Lookup("dome")
	fmt.Println(b.Name, b.Dimension, err)
	// Output:
	// [sync async delay hybrid pairs]
	// 1 and 2 asynchronous: true
	// 2 and 3 asynchronous: false
	// dome 2 <nil>
}

// The error of an unknown name suggests a known one and lists all.
func ExampleSet_Scheme() {
	_, err := catalog.New().Scheme("asinc", nil)
	fmt.Println(err)
	// Output: --scheme "asinc" (did you mean "async"?): want sync, async, delay or hybrid
}
