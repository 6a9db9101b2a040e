// Command own-obstacle is the program obstacle with a row, method, scheme, problem, iteration and link of its own:
// own-obstacle solve dome --peers 4 --method damped --scheme pairs --rows checksum --network unix.
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
	if err := errors.Join(
		c.Protocols.AddRow(microproto.Row{Protocol: "checksum", Help: "a CRC", New: newChecksum, Columns: reliable()}),
		c.Methods.Add(damped{}),
		c.Schemes.Add("pairs", "synchronous in pairs", newPairs),
		c.Problems.Add(problems.Builtin{Name: "dome", Summary: "a membrane over a dome", Dimension: 2}, dome),
		c.Problems.AddIteration(problems.Builtin{
			Name: "line", Summary: "a line of averages",
			Parameters: []problems.Parameter{{Name: "values", Value: 96, Summary: "the number of values, 1 or more"}},
		}, newLine),
		c.Links.Add("unix", "Unix sockets", catalog.Link{Network: p2psap.SharedMemory, Open: openUnix}),
	); err != nil {
		log.Fatal(err)
	}
	os.Exit(obstacle.Main(c))
}
