package traces

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// Formats returns the writers by the name of the format.
func Formats() map[string]func(s *Set, w io.Writer) error {
	return map[string]func(s *Set, w io.Writer) error{
		"text": (*Set).Text, "perfetto": (*Set).Perfetto, "pcapng": (*Set).Pcapng,
	}
}

// position is a record of a node.
type position struct {
	at           int64
	node, record int
}

// ordered returns the records of all nodes by time.
func (s *Set) ordered() []position {
	var out []position
	for i, n := range s.Nodes {
		for j := range n.Records {
			out = append(out, position{s.Time(i, &n.Records[j]), i, j})
		}
	}
	slices.SortStableFunc(out, func(a, b position) int { return cmp.Compare(a.at, b.at) })
	return out
}

// Text writes a line for each record: seconds, node, session, and what happened.
func (s *Set) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	for _, p := range s.ordered() {
		n := s.Nodes[p.node]
		r := &n.Records[p.record]
		session := n.Session(r.Session).Name
		fmt.Fprintf(w, "%.9f %s %s %s\n", float64(p.at)/1e9, name(n.Name), name(session), Line(n, r))
	}
	return w.Flush()
}

// name returns a name for text, "-" for none.
func name(s string) string { return cmp.Or(s, "-") }

// Line describes a record.
func Line(n *trace.Node, r *trace.Record) string {
	switch r.Kind {
	case trace.Send, trace.Receive:
		return fmt.Sprintf("%v tag %d label %d %d B%s", r.Kind, r.Tag, r.Number, r.Bytes, flow(n, r))
	case trace.Accepted:
		return fmt.Sprintf("%v transfer %d", r.Kind, r.Number)
	case trace.SegmentOut, trace.SegmentIn:
		return fmt.Sprintf("%v segment %d%s %d B rail %s%s", r.Kind, r.Number, times(r.Count), r.Bytes,
			railName(n, r.Rail), flow(n, r))
	case trace.Loss:
		return fmt.Sprintf("%v of segment %d%s by %v", r.Kind, r.Number, times(r.Count), r.Cause)
	case trace.IdleRestart:
		return fmt.Sprintf("%v after %v%s", r.Kind, time.Duration(r.Number), flow(n, r))
	case trace.WindowFull:
		return fmt.Sprintf("%v for %d B%s", r.Kind, r.Bytes, flow(n, r))
	case trace.Replaced, trace.Dropped:
		return fmt.Sprintf("%v %d B%s (%s)", r.Kind, r.Bytes, times(r.Count), n.Text(r.Value))
	case trace.RailUp, trace.RailDown:
		return fmt.Sprintf("%v %s to %s %s", r.Kind, railName(n, r.Rail), n.Text(r.Tag), n.Text(r.Value))
	case trace.Move:
		return fmt.Sprintf("%v to %s", r.Kind, railName(n, r.Rail))
	case trace.EpochBegin:
		return fmt.Sprintf("%v %d%s", r.Kind, r.Epoch, composition(n, r))
	case trace.RelaxBegin, trace.RelaxEnd:
		return fmt.Sprintf("%v sweep %d %d points", r.Kind, r.Number, r.Bytes)
	case trace.Step:
		return microproto.StepOf(n, r).String()
	}
	return fmt.Sprintf("%v %d", r.Kind, r.Number)
}

func times(count uint16) string {
	if count == 1 {
		return ""
	}
	return fmt.Sprintf(" ×%d", count)
}

// flow describes the window, if the record has any of it.
func flow(n *trace.Node, r *trace.Record) (out string) {
	unit := "B"
	if l := n.Layout(r.Session, r.Epoch); l != nil && l.Asynchronous {
		unit = "packets"
	}
	if r.Window != 0 {
		out = fmt.Sprintf(" window %d %s", r.Window, unit)
	}
	if r.Window != 0 || r.InFlight != 0 || r.Waiting != 0 {
		out += fmt.Sprintf(" in flight %d waiting %d", r.InFlight, r.Waiting)
	}
	if r.Kind == trace.SegmentOut && r.Value != 0 {
		out += fmt.Sprintf(" rtt %v", time.Duration(r.Value))
	}
	return out
}

func composition(n *trace.Node, r *trace.Record) string {
	if r.Number >= uint64(len(n.Layouts)) {
		return ""
	}
	l := &n.Layouts[r.Number]
	text := fmt.Sprintf(" %s over %s: %v", l.Column, l.Network, l.Protocols)
	if r.Value > 0 {
		text += fmt.Sprintf(" after %v", time.Duration(r.Value)*time.Microsecond)
	}
	return text
}

// railName returns the network of a rail.
func railName(n *trace.Node, rail uint8) string {
	if int(rail) < len(n.Rails) {
		return n.Rails[rail]
	}
	return fmt.Sprintf("rail %d", rail)
}
