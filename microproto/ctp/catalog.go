package ctp

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// Catalog returns a catalog of every micro-protocol of this package, under its name in
// Table I, and of the optional rows. The Option constants name the settings of each.
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
		{"DCCPAck", newDCCPAck},
		{"DCCPWindowCongestionControl", newDCCPWindow},
		{"TCPCongestionAvoidance", newTCPCongestionAvoidance},
	} {
		if err := c.Add(e.name, e.make); err != nil {
			panic(err) // a name twice in the list above
		}
	}
	for _, r := range rows() {
		if err := c.AddRow(r); err != nil {
			panic(err) // a label twice in rows
		}
	}
	return c
}

// rows returns the optional rows of this package. The row of a table's own controller has
// no columns: choosing it adds nothing.
func rows() []microproto.Row {
	cubic := ControllerRow(CUBICCongestionAvoidance, "CUBIC (RFC 9438)",
		func(o microproto.Options) (Controller, error) { return NewCUBIC(o) })
	cubic.Label, cubic.Columns = "cubic", []microproto.Column{{Mode: microproto.ModeSynchronous}}
	return []microproto.Row{
		{
			Protocol: "TCPNewRenoCongestionAvoidance", Group: GroupCongestion, Label: "newreno",
			Help: "TCP NewReno (RFC 6582), the controller of Table I",
		},
		cubic,
		{
			Protocol: "NegativeAck", New: newNegativeAck,
			Help: "receivers report missing segments at once, senders send them again",
			Columns: []microproto.Column{{Mode: microproto.ModeSynchronous, Intra: true},
				{Mode: microproto.ModeSynchronous}},
		},
	}
}

// option returns a setting, def if it is absent; an error if it is out of bounds.
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
