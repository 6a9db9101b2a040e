package ctp

import (
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
)

// Catalog returns a catalog of every micro-protocol of this package, under its name in
// Table I, and of the optional rows. The Option constants name the settings of each.
func Catalog() *microproto.Catalog {
	c, errs := microproto.NewCatalog(), []error{}
	for _, e := range []struct {
		name string
		make func(*settings) microproto.MicroProtocol
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
		errs = append(errs, c.Add(e.name, constructor(e.name, e.make)))
	}
	for _, r := range rows() {
		errs = append(errs, c.AddRow(r))
	}
	if err := errors.Join(errs...); err != nil {
		panic(err) // a name or a label twice
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
			Protocol: "NegativeAck", New: constructor("NegativeAck", newNegativeAck),
			Help: "receivers report missing segments at once, senders send them again",
			Columns: []microproto.Column{{Mode: microproto.ModeSynchronous, Intra: true},
				{Mode: microproto.ModeSynchronous}},
		},
	}
}
