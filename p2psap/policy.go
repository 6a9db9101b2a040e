package p2psap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Settings that the policy and the node give to micro-protocols.
const (
	OptionRTOFloor         = "rto.floor.ns"       // smallest retransmission time-out, nanoseconds
	OptionRTOMax           = "rto.max.ns"         // cap of its back-off, nanoseconds
	OptionRTOInitial       = "rto.initial.ns"     // time-out before the first measurement, nanoseconds
	OptionRTOGranularity   = "rto.granularity.ns" // G of RFC 6298 §2.3: least share of the variance, nanoseconds
	OptionSelective        = "recovery.selective" // 1: selective loss recovery (RFC 6675, RFC 8985) between clusters
	OptionProbeMargin      = "probe.margin.ns"    // tail-loss probes: margin over the round trip, nanoseconds; 0: none
	OptionReceiveBytes     = "receive.bytes"      // bound of this end's queue of received messages
	OptionPeerReceiveBytes = "peer.receive.bytes" // bound of the other end's queue: its first grant
	OptionPortLocal        = "port.local"         // agreed port of this end
	OptionPortRemote       = "port.remote"        // agreed port of the other end

	optionGrantsInMessages = "grants.in.messages"

	optionWindowBytes    = "window.bytes"
	optionWindowSegments = "window.segments"
)

// Floors of the retransmission time-out, inside a cluster and between clusters. The second that RFC 6298
// requires would be far too long for either. Between clusters the floor applies to the share of the
// variance, as in Linux: the time-out is SRTT + max(InterRTOFloor, 4·RTTVAR), so that a long round trip
// that hardly varies keeps a margin.
const (
	IntraRTOFloor = NetworkRTT
	InterRTOFloor = 200 * time.Millisecond
)

// Caps of the retransmission time-out. Between clusters it is the least that RFC 6298 §2.5 allows: a cap below the round
// trip would make every segment time out, and Karn's rule would then refuse every measurement. Inside a cluster, where
// round trips take milliseconds at most, it bounds the pause after an outage.
const (
	InterRTOMax = time.Minute
	IntraRTOMax = time.Second
)

// InterProbeMargin is the margin of tail-loss probes between clusters, above the scheduling delays of the
// other end. Without probes, the loss of the last segment of a message costs a time-out, and in lock-step
// every message has to arrive before the next is sent. Inside a cluster the time-out is as short itself.
const InterProbeMargin = 5 * time.Millisecond

// AgreementRTOMax is the cap of the time-out of agreement sessions (ClassAgreement) inside a cluster.
// Every peer waits for an agreement, and copies of a few small messages cost nothing. The cap is above
// every round trip for which a session keeps a column inside a cluster (MonitorConfig.FarAbove), and an
// outage of three seconds makes fewer copies than the monitor needs for a loss rate.
const AgreementRTOMax = 100 * time.Millisecond

// TableRows returns the micro-protocols of Table I in the table's order, from the top of the stack to its
// bottom.
func TableRows() []string {
	return []string{
		"TransportDriver", "Resize", "Synchronous", "Asynchronous", "SequencedSegment", "PositiveAck",
		"Retransmit", "RTTEstimation", "ReliableFIFO", "DuplicateAck", "WindowCongestionControl",
		"TCPNewRenoCongestionAvoidance", "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance",
	}
}

// Column is one column of Table I.
type Column = microproto.Column

// TableProtocols returns the micro-protocols of a column in the table's order, in which a composite
// attaches them.
func TableProtocols(c Column) []string {
	out := []string{"TransportDriver", "Resize"}
	if c.Mode == microproto.ModeAsynchronous {
		out = append(out, "Asynchronous")
		if !c.InfiniBand && !c.Intra {
			out = append(out, "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance")
		}
		return out
	}
	out = append(out, "Synchronous")
	if !c.InfiniBand {
		out = append(out, "SequencedSegment", "PositiveAck", "Retransmit", "RTTEstimation", "ReliableFIFO")
		if !c.Intra {
			out = append(out, "DuplicateAck", "WindowCongestionControl", "TCPNewRenoCongestionAvoidance")
		}
	}
	return out
}

// ColumnOf returns the column for conditions. A measured distance takes precedence over the locality,
// and a path that loses much needs the congestion control of the columns between clusters. The error
// names the condition that has no valid value.
func ColumnOf(c Conditions) (Column, error) {
	switch {
	case c.Mode != microproto.ModeSynchronous && c.Mode != microproto.ModeAsynchronous:
		return Column{}, fmt.Errorf("p2psap: no column of Table I for mode %d: want sync or async", c.Mode)
	case c.Locality < SameProcess || c.Locality > OtherCluster:
		return Column{}, fmt.Errorf("p2psap: no column of Table I for locality %d", c.Locality)
	case !c.Network.Valid():
		return Column{}, fmt.Errorf("p2psap: no column of Table I for network %d", c.Network)
	}
	intra := c.Locality.Intra()
	if c.Distance != DistanceUnknown {
		intra = c.Distance == Near
	}
	return Column{Mode: c.Mode, Intra: intra && !c.Lossy, InfiniBand: c.Network != Ethernet}, nil
}

// TablePolicy is Table I of Tembo, Nguyen and El Baz (PDP 2013). The zero value has the RTO floors above.
type TablePolicy struct {
	Intra, Inter time.Duration // RTO floors; 0: the defaults
	Optional     []OptionalRow // rows behind those of the table, in this order
}

// OptionalRow is a micro-protocol that an option adds to columns of Table I.
type OptionalRow = microproto.Row

// Compose implements Policy. It checks no catalog; see Missing.
func (p TablePolicy) Compose(c Conditions) (Composition, error) {
	column, err := ColumnOf(c)
	if err != nil {
		return Composition{}, err
	}
	composed := Composition{Column: column.String(), Protocols: TableProtocols(column), Options: p.timeout(column)}
	if column == (Column{Mode: microproto.ModeSynchronous}) {
		// The congestion window bounds what is in flight. The fixed window of the columns inside a
		// cluster is too small for a long and fast path.
		composed.Options[optionWindowBytes], composed.Options[optionWindowSegments] = 8<<20, 4096
		composed.Options[OptionProbeMargin], composed.Options[OptionSelective] = int64(InterProbeMargin), 1
	}
	if c.Network == Stream && column.Mode == microproto.ModeSynchronous {
		composed.Options[optionGrantsInMessages] = 1 // a grant in a frame of its own takes a system call at each end
	}
	for _, row := range p.Optional {
		if slices.Contains(row.Columns, column) {
			composed.add(row)
		}
	}
	return composed, nil
}

func (p TablePolicy) timeout(c Column) microproto.Options {
	if c.Intra {
		floor := cmp.Or(p.Intra, IntraRTOFloor)
		return microproto.Options{OptionRTOFloor: int64(floor), OptionRTOMax: int64(max(floor, IntraRTOMax))}
	}
	floor := cmp.Or(p.Inter, InterRTOFloor)
	return microproto.Options{
		OptionRTOFloor: int64(floor), OptionRTOGranularity: int64(floor), OptionRTOMax: int64(max(floor, InterRTOMax)),
	}
}

func (c *Composition) add(row OptionalRow) {
	c.Protocols = append(c.Protocols, row.Protocol)
	c.Optional = append(c.Optional, row.Protocol)
	for _, key := range slices.Sorted(maps.Keys(row.Options)) {
		c.Options[key] = row.Options[key]
	}
}

// Missing returns an error that names the micro-protocols of a composition that the catalog lacks; nil:
// it has all of them.
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
	return fmt.Errorf("p2psap: the column %q of Table I needs micro-protocols that this program does not have: %s",
		c.Column, strings.Join(names, ", "))
}
