// Command obstacle solves obstacle problems with peers that exchange halos over P2PSAP. See docs/cli.md, or
// obstacle --help. examples/own-obstacle shows how to build it with micro-protocols, problems and links of your own.
package main

import (
	"os"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

func main() { os.Exit(obstacle.Main(catalog.New())) }
