package ctp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// A segment from another port, or for another one, is dropped, whether it takes the common path or the chains.
func TestSegmentsOfOtherPorts(t *testing.T) {
	for _, traced := range []bool{false, true} {
		end := func(local, remote int64) *microproto.Composite {
			config := microproto.Config{Name: "end", MTU: 1400}
			if traced {
				config.Tracer = mptest.NewTraceHash()
			}
			c, err := microproto.NewComposite(config,
				build(t, syncReady, microproto.Options{OptionPortLocal: local, OptionPortRemote: remote})...)
			require.NoError(t, err)
			require.NoError(t, c.Open(0))
			return c
		}
		for _, ports := range [][2]int64{{2, 1}, {2, 3}, {3, 1}} { // of the sender
			from, to := end(ports[0], ports[1]), end(1, 2)
			require.NoError(t, from.Do(1, func(x *microproto.Exec) {
				_, err := from.Endpoint().Send(x, tag, 1, []byte("12345678"))
				require.NoError(t, err)
			}))
			for _, o := range from.Drain(nil) {
				require.NoError(t, to.Input(1, o.Frame))
			}
			arrived := uint64(0)
			if ports == [2]int64{2, 1} {
				arrived = 1
			}
			require.Equal(t, arrived, to.Endpoint().Arrivals(), "%v", ports)
		}
	}
}
