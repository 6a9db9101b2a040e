// Command own-obstacle is the program obstacle with a micro-protocol, a problem and a link of its own: every command and
// flag of docs/cli.md works, and in addition
//
//	own-obstacle solve dome --n 64 --peers 4 --rows Checksum --network unix
package main

import (
	"errors"
	"log"
	"os"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
)

func main() {
	c := catalog.New()
	err := errors.Join(
		c.Protocols.AddRow(microproto.Row{
			Protocol: "Checksum", New: newChecksum, Help: "drop damaged segments", Columns: reliable(),
		}),
		c.Problems.Add(problems.Builtin{Name: "dome", Summary: "a membrane over a dome", Dimension: 2}, dome),
		c.Links.Add("unix", "Unix sockets within a host", catalog.Link{Network: p2psap.SharedMemory, Open: openUnix}),
	)
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(obstacle.Main(c))
}
