package choice

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Congestions are the words of --congestion.
func Congestions() []string { return []string{"newreno", "cubic"} }

// Congestion reads the word of --congestion: the rows that stand behind those of
// Table I for it. newreno, and "", is the table as it is.
func Congestion(s string) ([]p2psap.OptionalRow, error) {
	switch s {
	case "", "newreno":
		return nil, nil
	case "cubic":
		return []p2psap.OptionalRow{{
			Protocol: ctp.CUBICCongestionAvoidance,
			Columns:  []p2psap.Column{{Mode: microproto.ModeSynchronous}}, // between clusters, over Ethernet
		}}, nil
	}
	return nil, fmt.Errorf("--congestion %q%s: want newreno or cubic", s, spelling.Suggest(s, Congestions()))
}

const negativeAckRow = "NegativeAck"

// Flag names the flag that adds an optional row.
func Flag(row string) string {
	if row == negativeAckRow {
		return "--negative-ack"
	}
	return "--congestion"
}

// Rows are all the rows that options add behind those of Table I: Congestion's, and
// with --negative-ack the one that names gaps.
func Rows(congestion string, negativeAck bool) ([]p2psap.OptionalRow, error) {
	rows, err := Congestion(congestion)
	if negativeAck {
		rows = append(rows, p2psap.OptionalRow{
			Protocol: negativeAckRow,
			Columns:  []p2psap.Column{{Mode: microproto.ModeSynchronous, Intra: true}, {Mode: microproto.ModeSynchronous}},
		})
	}
	return rows, err
}
