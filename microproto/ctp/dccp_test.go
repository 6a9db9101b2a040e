package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

var asyncInter = []string{"TransportDriver", "Resize", "Asynchronous", "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance"}

func TestAsynchronousInterConformance(t *testing.T) {
	for _, name := range asyncInter {
		t.Run(name, func(t *testing.T) {
			mptest.Conform(t, mptest.Subject{
				Protocol: name,
				New:      func(int) []microproto.MicroProtocol { return build(t, asyncInter, nil) },
			})
		})
	}
}

// interRig is two ends of the asynchronous inter-cluster Ethernet column with one slot.
func interRig(tb require.TestingT, o microproto.Options, mtu int, seed uint64, f mptest.Faults, length int) *rig {
	r := newRig(tb, asyncInter, o, mtu, seed, f)
	for _, c := range r.ends {
		require.NoError(tb, c.Endpoint().Slot(tag, length))
	}
	return r.open()
}

// interOptions are what the policy gives the column; slowOptions have a time-out that
// does not come by itself in tests that count packets.
var (
	interOptions = microproto.Options{OptionRTOFloor: int64(200 * time.Millisecond)}
	slowOptions  = microproto.Options{OptionRTOFloor: int64(200 * time.Millisecond), OptionPacketRTOFloor: int64(200 * time.Millisecond)}
)
