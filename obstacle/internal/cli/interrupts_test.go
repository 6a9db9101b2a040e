package cli

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal that arrives twice within sameRequest is one request: timeout(1) signals its child, and then the group of which the
// child is a member. Another signal, or the same one later, ends the program at once.
func TestDemandsOfSignals(t *testing.T) {
	type arrival struct {
		s     os.Signal
		after time.Duration // of the first one
		want  demand
	}
	term, hangup, interrupt := syscall.SIGTERM, syscall.SIGHUP, os.Interrupt
	for name, all := range map[string][]arrival{
		"one":                  {{term, 0, demandEnd}},
		"timeout":              {{term, 0, demandEnd}, {term, 100 * time.Millisecond, demandNone}},
		"timeout, then Ctrl-C": {{term, 0, demandEnd}, {term, 0, demandNone}, {interrupt, time.Millisecond, demandAbort}},
		"a closed terminal":    {{hangup, 0, demandEnd}, {hangup, time.Microsecond, demandNone}},
		"many at once, later": {{interrupt, 0, demandEnd}, {interrupt, 1, demandNone}, {interrupt, 2, demandNone},
			{interrupt, sameRequest - 1, demandNone}, {interrupt, sameRequest, demandAbort}},
		"twice":         {{interrupt, 0, demandEnd}, {interrupt, time.Second, demandAbort}},
		"two kinds":     {{interrupt, 0, demandEnd}, {term, 0, demandAbort}},
		"the clock ran": {{interrupt, 0, demandEnd}, {interrupt, 1<<63 - 1, demandAbort}},
	} {
		var d demands
		began := time.Unix(1, 0)
		for i, a := range all {
			require.Equal(t, a.want, d.arrive(a.s, began.Add(a.after)), "%s, signal %d", name, i)
		}
	}
}
