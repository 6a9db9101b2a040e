package obstacle_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// dome is a membrane on a square, fixed at height 0 along the edge and held up by a paraboloid in the middle.
func dome(p *problem.Problem, _ []float64) error {
	p.Lo, p.Hi = problem.Point{-1, -1}, problem.Point{1, 1}
	p.Obstacle = func(q problem.Point) float64 { return 0.5 - 2*(q[0]*q[0]+q[1]*q[1]) }
	p.Boundary = func(problem.Point) float64 { return 0 }
	return nil
}

// The program adds a problem, dome, to the catalog, and solves it on two grids. A main function needs only
// os.Exit(obstacle.Main(c)). The example sets the arguments of the process, and reads the JSON that Main prints.
func ExampleMain() {
	c := catalog.New()
	if err := c.Problems.Add(problems.Builtin{Name: "dome", Dimension: 2}, dome); err != nil {
		log.Fatal(err)
	}
	defer func(args []string, out *os.File) { os.Args, os.Stdout = args, out }(os.Args, os.Stdout)
	os.Args = []string{"obstacle", "convergence", "dome", "--grids", "7,15", "--format", "json"}
	r, w, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	screen := os.Stdout
	os.Stdout = w
	exit := obstacle.Main(c)
	_ = w.Close()

	var answer struct {
		Problem string
		Grids   []struct {
			N       []int
			Contact float64 `json:"contact_share"`
		}
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(screen, "exit code", exit)
	for _, g := range answer.Grids {
		fmt.Fprintf(screen, "%s on %v points: %.1f %% in contact\n", answer.Problem, g.N, 100*g.Contact)
	}
	// Output:
	// exit code 0
	// dome on [7 7] points: 10.2 % in contact
	// dome on [15 15] points: 9.3 % in contact
}
