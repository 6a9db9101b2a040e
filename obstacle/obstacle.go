// Package obstacle is the program obstacle, for a main package of your own that adds to its catalogs:
//
//	c := catalog.New()
//	err := c.Problems.Add(problems.Builtin{Name: "dome", Dimension: 2}, dome)
//	…
//	os.Exit(obstacle.Main(c))
//
// examples/own-obstacle is such a program, docs/cli.md describes the commands.
package obstacle

import (
	"context"
	"os"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/cli"
)

// Main runs the program with the arguments and the streams of this process and returns its exit code. A run starts its
// peers by running the same executable again, so main must add the same to c in every process.
func Main(c *catalog.Set) (exit int) {
	return cli.Main(context.Background(), os.Args[1:], c, os.Stdin, os.Stdout, os.Stderr)
}
