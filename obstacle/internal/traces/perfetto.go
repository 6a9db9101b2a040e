package traces

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p2pdc/p2pdc/trace"
)

// Numbers of fields in the schema of Perfetto, protos/perfetto/trace: Trace, TracePacket, TrackDescriptor,
// ProcessDescriptor, CounterDescriptor, TrackEvent and DebugAnnotation.
const (
	tracePacket = 1

	packetTimestamp, packetSequence, packetFlags, packetEvent, packetTrack = 8, 10, 13, 11, 60

	trackUUID, trackName, trackProcess, trackParent, trackCounter, trackOrdering, trackRank = 1, 2, 3, 5, 8, 11, 12

	processPID, processName = 1, 6

	counterUnit, counterUnitName = 3, 6

	eventAnnotation, eventType, eventTrack, eventName, eventCounter, eventFlow, eventLastFlow = 4, 9, 11, 23, 30, 47, 48

	annotationUint, annotationName = 3, 10
)

// Values of TrackEvent.Type, CounterDescriptor.Unit, TrackDescriptor.ChildTracksOrdering and TracePacket.SequenceFlags.
const (
	sliceBegin, sliceEnd, instant, counterValue = 1, 2, 3, 4

	unitTime, unitCount, unitBytes = 1, 2, 3

	orderExplicit = 3

	stateCleared = 1
)

// perfetto writes a trace.
type perfetto struct {
	*Set
	w      *bufio.Writer
	begun  bool
	packet []byte
	body   []byte
	nested []byte
	tracks map[trackKey]uint64
	values map[uint64]uint64 // the last value by counter
	flows  map[position]flowEnds
}

// flowEnds are the messages that begin and end at a record, counted from 1; 0: none.
type flowEnds struct{ out, in uint64 }

// trackKey identifies a track. what is "" for a node.
type trackKey struct {
	node   int
	what   string
	number int
}

// Perfetto writes the trace for Perfetto: native track events. A node is a process. It has a track for its
// relaxations, one for each rail and one for each session, with counters of the window, of what is in flight and of
// the age of what it receives. Flows lead from send to receive.
func (s *Set) Perfetto(to io.Writer) error {
	p := &perfetto{
		Set: s, w: bufio.NewWriter(to), tracks: map[trackKey]uint64{}, values: map[uint64]uint64{},
		flows: map[position]flowEnds{},
	}
	for i, m := range s.Messages {
		from, to := position{node: m.From, record: m.Sent}, position{node: m.To, record: m.Unread}
		f := p.flows[from]
		f.out = uint64(i + 1)
		p.flows[from] = f
		f = p.flows[to]
		f.in = uint64(i + 1)
		p.flows[to] = f
	}
	for i, n := range s.Nodes {
		p.describeNode(i, n)
	}
	for _, at := range s.ordered() {
		p.record(at)
	}
	return p.w.Flush()
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// write writes a packet with p.body as the given field.
func (p *perfetto) write(at int64, field protowire.Number) {
	b := number(p.packet[:0], packetTimestamp, uint64(max(at, 0)))
	b = number(b, packetSequence, 1)
	if !p.begun {
		b = number(b, packetFlags, stateCleared)
		p.begun = true
	}
	p.packet = message(b, field, p.body)
	p.nested = message(p.nested[:0], tracePacket, p.packet)
	_, _ = p.w.Write(p.nested) // Flush returns the error
}

func (p *perfetto) describeNode(i int, n *trace.Node) {
	name := n.Name
	if n.Cluster != "" {
		name += " (" + n.Cluster + ")"
	}
	uuid := uint64(len(p.tracks) + 1)
	p.tracks[trackKey{node: i}] = uuid
	b := number(p.body[:0], trackUUID, uuid)
	p.nested = number(p.nested[:0], processPID, uint64(i+1))
	p.nested = text(p.nested, processName, name)
	b = message(b, trackProcess, p.nested)
	p.body = number(b, trackOrdering, orderExplicit)
	p.write(0, packetTrack)
}

// track returns the number of a track, which it describes at first.
func (p *perfetto) track(k trackKey, name string, rank, unit uint64, unitName string) uint64 {
	if uuid, ok := p.tracks[k]; ok {
		return uuid
	}
	uuid := uint64(len(p.tracks) + 1)
	p.tracks[k] = uuid
	b := number(p.body[:0], trackUUID, uuid)
	b = number(b, trackParent, p.tracks[trackKey{node: k.node}])
	b = text(b, trackName, name)
	b = number(b, trackRank, rank)
	if unit != 0 {
		p.nested = number(p.nested[:0], counterUnit, unit)
		if unitName != "" {
			p.nested = text(p.nested, counterUnitName, unitName)
		}
		b = message(b, trackCounter, p.nested)
	}
	p.body = b
	p.write(0, packetTrack)
	return uuid
}

// Places of tracks in a node: relaxations, rails, then sessions with their counters.
const (
	rankRelaxing = iota
	rankRails
	rankSessions = 1000
	rankEach     = 10
)

func (p *perfetto) railTrack(at position, r *trace.Record) uint64 {
	n := p.Nodes[at.node]
	k := trackKey{at.node, "rail", int(r.Rail)}
	return p.track(k, "rail "+railName(n, r.Rail), rankRails+uint64(r.Rail), 0, "")
}

func (p *perfetto) sessionTrack(at position, r *trace.Record) uint64 {
	s := p.Nodes[at.node].Session(r.Session)
	k := trackKey{at.node, "session", int(r.Session)}
	return p.track(k, fmt.Sprintf("%s with %s", name(s.Name), name(s.Peer)), rankSession(r), 0, "")
}

func rankSession(r *trace.Record) uint64 { return rankSessions + rankEach*uint64(r.Session) }

// record writes a record.
func (p *perfetto) record(at position) {
	n := p.Nodes[at.node]
	r := &n.Records[at.record]
	switch r.Kind {
	case trace.RelaxBegin, trace.RelaxEnd:
		track := p.track(trackKey{at.node, "relaxing", 0}, "relaxations", rankRelaxing, 0, "")
		if r.Kind == trace.RelaxEnd {
			p.event(at, track, sliceEnd, "")
			return
		}
		p.event(at, track, sliceBegin, fmt.Sprintf("sweep %d", r.Number), annotation{"points", uint64(r.Bytes)})
	case trace.SegmentOut, trace.SegmentIn:
		label := fmt.Sprintf("%v %s", r.Kind, n.Session(r.Session).Name)
		p.event(at, p.railTrack(at, r), instant, label, annotation{"segment", r.Number},
			annotation{"segments", uint64(r.Count)}, annotation{"bytes", uint64(r.Bytes)},
			annotation{"epoch", uint64(r.Epoch)}, annotation{"rtt.ns", uint64(r.Value)})
		if r.Kind == trace.SegmentOut {
			p.window(at, n, r)
		}
	case trace.RailUp, trace.RailDown:
		p.event(at, p.railTrack(at, r), instant, Line(n, r))
	case trace.Send:
		p.event(at, p.sessionTrack(at, r), instant, fmt.Sprintf("send %d", r.Tag), annotation{"label", r.Number},
			annotation{"bytes", uint64(r.Bytes)}, annotation{"waiting", uint64(r.Waiting)})
		p.window(at, n, r)
	case trace.Receive:
		p.event(at, p.sessionTrack(at, r), instant, fmt.Sprintf("receive %d", r.Tag), annotation{"label", r.Number},
			annotation{"bytes", uint64(r.Bytes)})
		p.age(at, r)
	default:
		p.event(at, p.sessionTrack(at, r), instant, Line(n, r))
	}
}

// annotation is a number beside an event.
type annotation struct {
	name  string
	value uint64
}

func (p *perfetto) event(at position, track, kind uint64, label string, with ...annotation) {
	b := number(p.body[:0], eventType, kind)
	b = number(b, eventTrack, track)
	if label != "" {
		b = text(b, eventName, label)
	}
	for _, a := range with {
		p.nested = number(p.nested[:0], annotationUint, a.value)
		p.nested = text(p.nested, annotationName, a.name)
		b = message(b, eventAnnotation, p.nested)
	}
	f := p.flows[position{node: at.node, record: at.record}]
	if f.out != 0 {
		b = protowire.AppendFixed64(protowire.AppendTag(b, eventFlow, protowire.Fixed64Type), f.out)
	}
	if f.in != 0 {
		b = protowire.AppendFixed64(protowire.AppendTag(b, eventLastFlow, protowire.Fixed64Type), f.in)
	}
	p.body = b
	p.write(at.at, packetEvent)
}

// window writes the counters of a session's window.
func (p *perfetto) window(at position, n *trace.Node, r *trace.Record) {
	if r.Window == 0 {
		return
	}
	unit, unitName := uint64(unitBytes), ""
	if l := n.Layout(r.Session, r.Epoch); l != nil && l.Asynchronous {
		unit, unitName = unitCount, "packets"
	}
	p.counter(at, r, gauge{"window", 1, unit, unitName}, uint64(r.Window))
	p.counter(at, r, gauge{"in flight", 2, unit, unitName}, uint64(r.InFlight))
}

// age writes the time since the message was sent, where that is known.
func (p *perfetto) age(at position, r *trace.Record) {
	i := p.flows[position{node: at.node, record: at.record}].in
	if i == 0 {
		return
	}
	m := p.Messages[i-1]
	sent := &p.Nodes[m.From].Records[m.Sent]
	p.counter(at, r, gauge{"age", 3, unitTime, ""}, uint64(max(at.at-p.Time(m.From, sent), 0)))
}

// gauge is a counter of a session.
type gauge struct {
	what       string
	rank, unit uint64
	unitName   string
}

func (p *perfetto) counter(at position, r *trace.Record, g gauge, value uint64) {
	s := p.Nodes[at.node].Session(r.Session)
	k := trackKey{at.node, g.what + g.unitName, int(r.Session)}
	track := p.track(k, g.what+", "+s.Name, rankSession(r)+g.rank, g.unit, g.unitName)
	if last, ok := p.values[track]; ok && last == value {
		return
	}
	p.values[track] = value
	b := number(p.body[:0], eventType, counterValue)
	b = number(b, eventTrack, track)
	p.body = number(b, eventCounter, min(value, math.MaxInt64))
	p.write(at.at, packetEvent)
}
