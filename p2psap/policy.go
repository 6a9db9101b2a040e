package p2psap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Settings that the policy and the node give to micro-protocols.
const (
	// OptionRTOFloor is the smallest retransmission time-out, OptionRTOMax the cap of its
	// back-off, OptionRTOInitial the one before the first measurement, in nanoseconds.
	OptionRTOFloor   = "rto.floor.ns"
	OptionRTOMax     = "rto.max.ns"
	OptionRTOInitial = "rto.initial.ns"
	// OptionRTOGranularity is the least that the variance of the round trip adds to its
	// mean in a time-out (G of RFC 6298 §2.3), in nanoseconds.
	OptionRTOGranularity = "rto.granularity.ns"
	// OptionReceiveBytes bounds this end's queue of received messages;
	// OptionPeerReceiveBytes is the same of the other end: its first grant.
	OptionReceiveBytes     = "receive.bytes"
	OptionPeerReceiveBytes = "peer.receive.bytes"
	// OptionPortLocal and OptionPortRemote are the agreed ports.
	OptionPortLocal  = "port.local"
	OptionPortRemote = "port.remote"

	optionWindowBytes    = "window.bytes"
	optionWindowSegments = "window.segments"
)

// Floors of the retransmission time-out: RFC 6298's second would ruin both. Between
// clusters the floor is one of the variance's part, as in Linux: the time-out is
// SRTT + max(InterRTOFloor, 4·RTTVAR), so that a long round trip that hardly varies keeps a
// margin.
const (
	IntraRTOFloor = 2 * time.Millisecond
	InterRTOFloor = 200 * time.Millisecond
)

// InterRTOMax is the cap of the retransmission time-out between clusters, the least that
// RFC 6298 §2.5 allows. A cap that is shorter than the round trip makes every segment time
// out, and Karn's rule then refuses every measurement. Inside a cluster, where round trips
// take milliseconds at most, the cap is a second, which bounds the pause after an outage.
const InterRTOMax = time.Minute

// The micro-protocols of Table I, from the top of the stack to its bottom.
const (
	transportDriver = iota
	resize
	synchronous
	asynchronous
	sequencedSegment
	positiveAck
	retransmit
	rttEstimation
	reliableFIFO
	duplicateAck
	windowCongestionControl
	tcpNewReno
	dccpAck
	dccpWindow
	tcpCongestionAvoidance
	rows
)

func rowNames() [rows]string {
	return [rows]string{
		"TransportDriver", "Resize", "Synchronous", "Asynchronous", "SequencedSegment", "PositiveAck",
		"Retransmit", "RTTEstimation", "ReliableFIFO", "DuplicateAck", "WindowCongestionControl",
		"TCPNewRenoCongestionAvoidance", "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance",
	}
}

// TableRows lists the micro-protocols of Table I in the table's order.
func TableRows() []string {
	names := rowNames()
	return names[:]
}

// Column is one column of Table I.
type Column = microproto.Column

// Columns returns the eight columns of Table I, in the table's order.
func Columns() []Column { return microproto.Columns() }

// TableProtocols returns the micro-protocols of a column in the order in which a composite
// attaches them: the table's.
func TableProtocols(c Column) []string {
	set := []int{transportDriver, resize}
	if c.Mode == microproto.ModeSynchronous {
		set = append(set, synchronous)
		if !c.InfiniBand {
			set = append(set, sequencedSegment, positiveAck, retransmit, rttEstimation, reliableFIFO)
			if !c.Intra {
				set = append(set, duplicateAck, windowCongestionControl, tcpNewReno)
			}
		}
	} else {
		set = append(set, asynchronous)
		if !c.InfiniBand && !c.Intra {
			set = append(set, dccpAck, dccpWindow, tcpCongestionAvoidance)
		}
	}
	names := rowNames()
	out := make([]string, len(set))
	for i, row := range set {
		out[i] = names[row]
	}
	return out
}

// ColumnOf finds the column for conditions. What was found out at work goes before the
// locality, and a path that loses much needs the congestion control of the columns
// between clusters. The error says which of them is not
// one of its kind.
func ColumnOf(c Conditions) (Column, error) {
	switch {
	case c.Mode != microproto.ModeSynchronous && c.Mode != microproto.ModeAsynchronous:
		return Column{}, fmt.Errorf("p2psap: no column of Table I for mode %d: want sync or async", c.Mode)
	case c.Locality < SameProcess || c.Locality > OtherCluster:
		return Column{}, fmt.Errorf("p2psap: no column of Table I for locality %d", c.Locality)
	case c.Network < Ethernet || c.Network > Memory:
		return Column{}, fmt.Errorf("p2psap: no column of Table I for network %d", c.Network)
	}
	intra := c.Locality.Intra()
	if c.Distance != DistanceUnknown {
		intra = c.Distance == Near
	}
	return Column{Mode: c.Mode, Intra: intra && !c.Lossy, InfiniBand: c.Network != Ethernet}, nil
}

// TablePolicy is Table I of Tembo, Nguyen and El Baz (PDP 2013). The zero value
// has the RTO floors above.
type TablePolicy struct {
	Intra, Inter time.Duration // RTO floors; 0: the defaults
	// Optional rows come behind the table's, in this order.
	Optional []OptionalRow
}

// OptionalRow is a micro-protocol that an option adds to columns of Table I.
type OptionalRow = microproto.Row

// Compose implements Policy. It does not look at any catalog: Missing does.
func (p TablePolicy) Compose(c Conditions) (Composition, error) {
	column, err := ColumnOf(c)
	if err != nil {
		return Composition{}, err
	}
	composed := Composition{Column: column.String(), Protocols: TableProtocols(column), Options: p.timeout(column)}
	if column == (Column{Mode: microproto.ModeSynchronous}) {
		// The congestion window bounds what is in flight there; the fixed one inside a
		// cluster would be in the way of a long and fast path.
		composed.Options[optionWindowBytes], composed.Options[optionWindowSegments] = 8<<20, 4096
	}
	for _, row := range p.Optional {
		if slices.Contains(row.Columns, column) {
			composed.add(row)
		}
	}
	return composed, nil
}

// timeout is how the retransmission time-out of a column is bounded.
func (p TablePolicy) timeout(c Column) microproto.Options {
	if c.Intra {
		return microproto.Options{OptionRTOFloor: int64(cmp.Or(p.Intra, IntraRTOFloor))}
	}
	floor := cmp.Or(p.Inter, InterRTOFloor)
	return microproto.Options{
		OptionRTOFloor: int64(floor), OptionRTOGranularity: int64(floor), OptionRTOMax: int64(max(floor, InterRTOMax)),
	}
}

// add puts an optional row behind the others.
func (c *Composition) add(row OptionalRow) {
	c.Protocols = append(c.Protocols, row.Protocol)
	c.Optional = append(c.Optional, row.Protocol)
	for _, key := range slices.Sorted(maps.Keys(row.Options)) {
		c.Options[key] = row.Options[key]
	}
}

// Missing returns a *MissingError when the catalog lacks a micro-protocol of the
// composition, nil otherwise.
func Missing(catalog *microproto.Catalog, c Composition) error {
	var names []string
	for _, name := range c.Protocols {
		if !catalog.Has(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	return &MissingError{Column: c.Column, Names: names}
}
