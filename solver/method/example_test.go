package method_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// A membrane on the interval [0, 1] with the boundary values 0 is pushed down by a constant load and
// rests on the obstacle −0.05. The example solves −u″ = −1 with 7 interior points by multigrid.
func ExampleNew() {
	layout, err := kernel.NewLayout(1, [3]int{7, 1, 1})
	if err != nil {
		panic(err)
	}
	const h = 1.0 / 8
	s := method.System{
		Layout:    layout,
		Operator:  kernel.Operator{Diag: 2 / (h * h), Off: 1 / (h * h)},
		Source:    kernel.Field{Value: -1},
		Lower:     kernel.Field{Value: -0.05},
		Upper:     kernel.NoUpper(),
		Symmetric: true,
		Coarse: func(n [3]int, _ *method.Edges) (kernel.Operator, error) {
			h := 1 / float64(n[0]+1)
			return kernel.Operator{Diag: 2 / (h * h), Off: 1 / (h * h)}, nil
		},
	}
	m, err := method.New(method.NameMultigrid, s, method.Options{})
	if err != nil {
		panic(err)
	}
	u := make([]float64, layout.Len()) // the ghosts are the boundary values
	m.Start(u)
	for range 10 {
		m.Cycle(u)
	}
	fmt.Println(m.Describe())
	for x := range 7 {
		fmt.Printf("%.4f ", u[layout.Index(x, 0, 0)])
	}
	// Output:
	// grids 7 3 1
	// -0.0323 -0.0490 -0.0500 -0.0500 -0.0500 -0.0490 -0.0323
}

// The grids of a hierarchy depend on the number of points and on the coupling strengths. An axis of weak
// coupling is coarsened only after the others.
func ExampleNewHierarchy() {
	even := method.NewHierarchy(2, [3]int{63, 63, 1}, [3]float64{1, 1})
	uneven := method.NewHierarchy(2, [3]int{63, 63, 1}, [3]float64{4, 1})
	fmt.Println(even.String())
	fmt.Println(uneven.String())
	// Output:
	// 63² 31² 15² 7² 3² 1²
	// 63² 31×63 15×31 7×15 3×7 1×3 1²
}
