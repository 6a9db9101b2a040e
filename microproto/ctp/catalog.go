package ctp

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// Catalog lists every micro-protocol of this package under its name in Table I.
// The Option constants say which settings each of them reads.
func Catalog() *microproto.Catalog {
	c := microproto.NewCatalog()
	for _, e := range []struct {
		name string
		make microproto.Constructor
	}{
		{"TransportDriver", newTransportDriver},
		{"Resize", newResize},
		{"Synchronous", newSynchronous},
		{"Asynchronous", newAsynchronous},
		{"SequencedSegment", newSequencedSegment},
		{"PositiveAck", newPositiveAck},
		{"Retransmit", newRetransmit},
		{"RTTEstimation", newRTTEstimation},
		{"ReliableFIFO", newReliableFIFO},
		{"DuplicateAck", newDuplicateAck},
		{"WindowCongestionControl", newWindowCongestionControl},
		{"TCPNewRenoCongestionAvoidance", newTCPNewReno},
		{CUBICCongestionAvoidance, newCUBICProtocol},
		{"NegativeAck", newNegativeAck},
		{"DCCPAck", newDCCPAck},
		{"DCCPWindowCongestionControl", newDCCPWindow},
		{"TCPCongestionAvoidance", newTCPCongestionAvoidance},
	} {
		if err := c.Add(e.name, e.make); err != nil {
			panic(err) // a name twice in the list above
		}
	}
	return c
}

// option reads a setting within bounds.
func option(o microproto.Options, key string, def, low, high int64) (int64, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	if v < low || v > high {
		return 0, fmt.Errorf("ctp: option %q is %d; %d to %d are allowed", key, v, low, high)
	}
	return v, nil
}

const anyPositive = math.MaxInt64
