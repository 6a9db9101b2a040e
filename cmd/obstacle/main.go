// Command obstacle solves obstacle problems with peers that exchange halos over
// P2PSAP. See docs/cli.md, or obstacle --help.
package main

import (
	"context"
	"os"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/cli"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

func main() {
	// The micro-protocols that channels are composed of. One of your own joins
	// them here, by catalog.Add.
	catalog := ctp.Catalog()
	os.Exit(cli.Main(context.Background(), os.Args[1:], catalog, os.Stdin, os.Stdout, os.Stderr))
}
