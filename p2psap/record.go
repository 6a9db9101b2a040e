package p2psap

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
	"github.com/p2pdc/p2pdc/trace"
)

// What a node adds to NodeConfig.Trace. Without a ring, each place costs a comparison with nil.

// sessionRecords is what a session needs for its records; nil: the node has no ring.
type sessionRecords struct {
	index          uint16   // of the session in the records
	sent, received []uint32 // messages by slot
	accepted       Transfer // in the newest record
}

// Record adds a record of the caller, such as the begin of a relaxation. Without NodeConfig.Trace it does nothing.
func (n *Node) Record(now microproto.Instant, k trace.Kind, number uint64, bytes int) {
	if n.config.Trace != nil {
		r := n.config.Trace.Add(int64(now), k)
		r.Number, r.Bytes = number, trace.Clamp(bytes)
	}
}

// Snapshot returns what NodeConfig.Trace holds; nil: there is no ring. The caller sets Program, Began and Wall.
func (n *Node) Snapshot(now microproto.Instant) *trace.Node {
	if n.config.Trace == nil {
		return nil
	}
	d := trace.Node{
		Name: n.config.Name, Run: n.config.Run, Program: n.config.Version, Cluster: n.config.Cluster, Host: n.config.Host,
	}
	for _, r := range n.rails {
		d.Rails = append(d.Rails, r.Network.String())
	}
	return n.config.Trace.Snapshot(int64(now), d)
}

func (n *Node) beginRecords(s *session) {
	if t := n.config.Trace; t != nil {
		k := len(s.options.Slots)
		s.records = &sessionRecords{
			index: t.Session(s.options.Name, s.peer.Name), sent: make([]uint32, k), received: make([]uint32, k),
		}
	}
}

// source returns the source of a channel's records.
func (n *Node) source(s *session, c *channel) (out trace.Source) {
	if s.records != nil {
		out = trace.Source{Ring: n.config.Trace, Session: s.records.index, Epoch: uint8(c.number)}
		out.Rail = uint8(c.Rail.Number)
	}
	return out
}

// recordSend adds the record of a message that is about to be sent. undo removes it if it is not.
func (n *Node) recordSend(
	now microproto.Instant, s *session, tag Tag, label Label, data []byte,
) (r *trace.Record, mark uint64) {
	c := s.channel
	r = c.trace.Add(int64(now), trace.Send)
	r.Number, r.Tag, r.Bytes = uint64(label), uint32(tag), trace.Clamp(len(data))
	r.Count = uint16(s.info.MessagesSent + 1)
	c.composite.Flow().Put(r)
	if i := s.slot(tag); i >= 0 {
		r.Value = s.records.sent[i] + 1
	}
	return r, n.config.Trace.Mark()
}

// sendRecorded ends what recordSend began.
func (n *Node) sendRecorded(s *session, tag Tag, r *trace.Record, mark uint64, err error) {
	if err != nil {
		n.config.Trace.Undo(r, mark)
		return
	}
	if i := s.slot(tag); i >= 0 {
		s.records.sent[i]++
	}
}

func (n *Node) recordReceive(now microproto.Instant, s *session, tag Tag, a *Arrival) {
	r := s.channel.trace.Add(int64(now), trace.Receive)
	r.Number, r.Tag, r.Bytes = uint64(a.Newest), uint32(tag), trace.Clamp(a.Length)
	if s.conditions.Mode == microproto.ModeSynchronous {
		r.Number = uint64(a.Label)
	}
	if i := s.slot(tag); i >= 0 {
		s.records.received[i]++
		r.Value = s.records.received[i]
	}
}

// recordAccepted records that transfers were accepted, if some were.
func (n *Node) recordAccepted(now microproto.Instant, s *session) {
	if s.channel == nil || s.channel.mode() != microproto.ModeSynchronous {
		return
	}
	if a := s.acceptedNow(); a > s.records.accepted {
		s.records.accepted = a
		s.channel.trace.Add(int64(now), trace.Accepted).Number = uint64(a)
	}
}

// recordOut records segments that the composite has output.
func (c *channel) recordOut(now microproto.Instant, f *microproto.Frame) {
	r := c.recordSegment(now, trace.SegmentOut, f)
	c.composite.Flow().Put(r)
	r.Value = trace.Clamp(int(valueOf(c.cells.rtt)))
}

// recordIn records segments that have arrived. It takes the frame by value: the caller keeps its own out of memory.
func (c *channel) recordIn(now microproto.Instant, f microproto.Frame) {
	c.recordSegment(now, trace.SegmentIn, &f)
}

func (c *channel) recordSegment(now microproto.Instant, k trace.Kind, f *microproto.Frame) *trace.Record {
	r := c.trace.Add(int64(now), k)
	r.Number, r.Count = uint64(c.composite.Number(f.Data)), uint16(f.Count())
	r.Bytes = trace.Clamp(len(f.Data) + len(f.Body))
	if ring := c.trace.Ring; ring.KeepsFrames() {
		first, body := f.Data, f.Body
		if body == nil && f.Segment > 0 {
			first = first[:min(f.Segment, len(first))]
		}
		if body != nil {
			first = first[:min(f.Header, len(first))]
			body = body[:min(max(f.Segment-f.Header, 0), len(body))]
		}
		if c.sealing != nil { // the contents of a protected session are not for files
			first, body = first[:min(c.composite.HeaderBytes(), len(first))], nil
		}
		ring.Frame(first, body)
	}
	return r
}

// recordFrame records what happened to a frame that waits for a rail, or should.
func (c *channel) recordFrame(now microproto.Instant, k trace.Kind, f microproto.Frame, reason string) {
	if c.trace.Ring != nil {
		r := c.trace.Add(int64(now), k)
		r.Count, r.Value = uint16(f.Count()), c.trace.Ring.Text(reason)
		r.Bytes = trace.Clamp(len(f.Data) + len(f.Body))
	}
}

// recordEpoch records that a session uses a channel from now on.
func (n *Node) recordEpoch(now microproto.Instant, s *session, c *channel, pause time.Duration, moved bool) {
	if s.records == nil {
		return
	}
	column, _ := ColumnOf(c.conditions)
	i := c.trace.Ring.Layout(trace.Layout{
		Session: s.records.index, Epoch: uint8(c.number), Asynchronous: c.mode() == microproto.ModeAsynchronous,
		WAN: !column.Intra, Sealed: s.sealed, Network: c.Rail.Network.String(), Locality: c.conditions.Locality.String(),
		Column: c.composition.Column, Protocols: slices.Clone(c.composition.Protocols), Fields: layoutOf(c.composite),
		HeaderBytes: c.composite.HeaderBytes(), Local: uint32(s.id), Remote: s.theirs.Session,
	})
	r := c.trace.Add(int64(now), trace.EpochBegin)
	r.Number, r.Value = uint64(i), trace.Clamp(int(pause.Microseconds()))
	if moved {
		c.trace.Add(int64(now), trace.Move)
	}
}

// layoutOf returns the fields of a composite's header. Those of the session header are named here: to the composite it
// is a row of bytes.
func layoutOf(c *microproto.Composite) (out []trace.Field) {
	for _, r := range c.Layout() {
		if r.Protocol == (sessionHeader{}).Name() {
			for _, f := range [...]trace.Field{{Name: "version", Length: 1}, {Name: "epoch", Offset: 1, Length: 1},
				{Name: "run", Offset: 2, Length: 2}, {Name: "session", Offset: 4, Length: 4}} {
				f.Protocol, f.Name, f.Offset = r.Protocol, "session."+f.Name, f.Offset+r.Offset
				out = append(out, f)
			}
			continue
		}
		out = append(out, trace.Field{Protocol: r.Protocol, Name: r.Name, Offset: r.Offset, Length: r.Length})
	}
	return out
}

// recordRail records that a path can be used, or no longer.
func (p *peer) recordRail(now microproto.Instant, w *rail.Path, up bool) {
	t := p.node.config.Trace
	if t == nil {
		return
	}
	k := trace.RailUp
	if !up {
		k = trace.RailDown
	}
	r := t.Add(int64(now), k)
	r.Rail, r.Tag, r.Value = uint8(w.Rail.Number), t.Text(p.Name), t.Text(w.Reason)
}
