// Command obstacle solves obstacle problems with peers that exchange halos over P2PSAP. See docs/cli.md, or
// obstacle --help. examples/own-obstacle shows how to build it with methods, micro-protocols and problems of
// your own.
package main

import (
	"os"

	"github.com/p2pdc/p2pdc/obstacle"
)

func main() { os.Exit(obstacle.New().Main()) }
