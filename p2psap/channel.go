package p2psap

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
	"github.com/p2pdc/p2pdc/trace"
)

// channel is the data channel of a session in one epoch: a composition and its composite.
type channel struct {
	rail.Binding
	composite  *microproto.Composite
	endpoint   microproto.Endpoint
	coalescer  microproto.Coalescer // the endpoint, if it is one and the mode is synchronous
	prober     microproto.Prober    // nil: none of the micro-protocols is one
	conditions Conditions
	header     header // of outgoing frames
	held       bool   // outgoing frames wait: the other end may not be ready for them
	limited    bool   // frames are shorter than the link's largest, because the path demands it
	overflowed bool   // a frame was dropped that no micro-protocol sends again
	// paced: a micro-protocol holds segments. It replaces them, frames leave in an order of its own, and one that
	// was replaced here would be missing at the other end, like one that the network lost.
	paced bool
	class rail.Class // of frames that are not small

	first     uint64 // transfers that were complete before the endpoint's first
	inherited uint64 // unread messages that the endpoint was given
	taken     uint64 // messages that Receive has returned

	frameBytes  int
	sealing     *microproto.Composite // below composite, in a protected session
	number      uint32                // of the epoch; its low byte is in frames
	composition Composition
	cells       cells
	trace       trace.Source // of its records
}

func (c *channel) mode() microproto.Mode { return c.conditions.Mode }

// portAt returns a port in the epoch of that number. Frames hold 8 bits of the epoch; the ports
// distinguish a frame of 256 epochs ago from one of the present.
func portAt(port uint16, epoch uint32) int64 {
	return (int64(port)+65535-1+int64(epoch>>8))%65535 + 1
}

// build makes a channel's composite for its frame size.
func (n *Node) build(s *session, c *channel, theirs *control.Open) error {
	c.limited = c.Path == nil && s.peer.frameLimit != 0 && c.frameBytes == s.peer.frameLimit
	protocols, err := n.config.Catalog.Build(c.composition.Protocols, n.options(s, c, theirs))
	if err != nil {
		return fmt.Errorf("p2psap: session %q: %w", s.options.Name, err)
	}
	caps := c.Rail.Link.Caps(c.mode())
	c.trace = n.source(s, c)
	config := microproto.Config{
		Name: s.options.Name + "@" + s.peer.Name, Seed: n.config.Seed ^ uint64(s.index())<<16 ^ uint64(c.number)<<32,
		MTU: c.frameBytes, Headroom: caps.Headroom, Frames: c.Rail.Link, Train: caps.Train, Gather: caps.Gather,
		Limits: n.config.Limits.Composite, Tracer: n.tracer(c), Trace: c.trace,
	}
	front := s.placeHeader(&config)
	if c.composite, err = microproto.NewComposite(config, append(front, protocols...)...); err != nil {
		return fmt.Errorf("p2psap: session %q: %w", s.options.Name, err)
	}
	if c.endpoint = c.composite.Endpoint(); c.endpoint == nil {
		return fmt.Errorf("p2psap: session %q: none of %v is an endpoint", s.options.Name, c.composition.Protocols)
	}
	if c.mode() == microproto.ModeSynchronous {
		c.coalescer, _ = c.endpoint.(microproto.Coalescer)
	}
	for _, p := range protocols {
		if q, ok := p.(microproto.Prober); ok {
			c.prober = q
		}
	}
	c.cells = cellsOf(c.composite)
	c.paced = c.composite.Holds()
	c.class = s.options.Class.in(c.mode())
	c.header = header{epoch: uint8(c.number), run: n.run, session: SessionID(theirs.Session)}
	return nil
}

// options returns the settings of a channel's micro-protocols.
func (n *Node) options(s *session, c *channel, theirs *control.Open) microproto.Options {
	options := maps.Clone(c.composition.Options)
	if options == nil {
		options = microproto.Options{}
	}
	switch column, err := ColumnOf(c.conditions); {
	case err != nil:
	case !column.Intra:
		first := s.peer.measurement.InitialTimeout(InterRTOMax)
		if first == 0 && s.peer.metrics.RTT > 0 {
			first = measuredTimeout(s.peer.metrics.RTT, time.Duration(options[OptionRTOFloor]), c.mode())
		}
		if first > 0 {
			options[OptionRTOInitial] = int64(first)
		}
	case s.options.Class == ClassAgreement:
		options[OptionRTOMax] = max(int64(AgreementRTOMax), options[OptionRTOFloor])
	}
	maps.Copy(options, s.options.Options)
	options[OptionReceiveBytes] = int64(s.options.ReceiveBytes)
	options[OptionPeerReceiveBytes] = int64(theirs.ReceiveBytes)
	options[OptionPortLocal] = portAt(s.mine.Port, c.number)
	if theirs.Port != 0 {
		options[OptionPortRemote] = portAt(theirs.Port, c.number)
	}
	return options
}

// fullQueue is the longest time that the first packets of a session wait in a full queue of a path whose round trip is
// short: more makes them time out needlessly.
const fullQueue = 50 * time.Millisecond

// measuredTimeout returns the first retransmission time-out on a path whose round trip was measured before, by other
// sessions or in earlier epochs (RFC 9040): that of RFC 6298 §2.2 after a first measurement. A session that changes
// because the path is congested often loses its first packets. With the default of a second it would be silent so long.
// An asynchronous session does not send values again, so that a short time-out costs little.
func measuredTimeout(rtt, floor time.Duration, mode microproto.Mode) time.Duration {
	if mode == microproto.ModeAsynchronous {
		floor = min(floor, fullQueue)
	}
	return rtt + max(floor, 2*rtt)
}

func (n *Node) tracer(c *channel) microproto.Tracer {
	if t := c.trace; n.config.Tracer == nil && t.Ring != nil && t.Ring.Steps() {
		return microproto.StepTracer(t)
	}
	return n.config.Tracer
}

// collect moves the outputs of a channel's composite, and fails the session on an error of it. tag
// is the tag of the Send that made the outputs, -1 if something else did.
func (n *Node) collect(now microproto.Instant, s *session, c *channel, err error, tag int64) {
	if c.held {
		c.composite.Flatten()
	} else {
		err = cmp.Or(err, n.queueFrames(now, s, c, tag))
	}
	if c.overflowed && err == nil {
		err = fmt.Errorf("%w: %d frames wait for a link that promises to lose none", ErrLimit, n.config.Limits.QueuedFrames)
	}
	if err != nil && !errors.Is(err, microproto.ErrNotOpen) {
		n.fail(now, s, err)
	}
}

func (n *Node) queueFrames(now microproto.Instant, s *session, c *channel, tag int64) (err error) {
	n.scratch = c.composite.Drain(n.scratch[:0])
	index, value := int32(0), uint64(0)
	busy, addr := c.Rail.Window.Len() > 0, c.addr(s)
	replaceable := tag >= 0 && c.mode() == microproto.ModeAsynchronous && !c.paced
	if replaceable && c.Path != nil {
		value = s.valueBase(Tag(tag))
	}
	for i := range n.scratch {
		o := &n.scratch[i]
		switch o.Kind {
		case microproto.OutFrame:
			if c.Over {
				c.recordFrame(now, trace.Dropped, o.Frame, "the path is down")
				o.Frame.Release()
				n.counters.FramesNoPath++
				continue
			}
			owner := rail.Owner{Session: uint32(s.id), Index: -1, Class: c.classOf(&o.Frame)}
			if !s.sealed {
				c.header.putAll(&o.Frame)
			}
			if n.recording {
				c.recordOut(now, &o.Frame)
			}
			if s.sealed {
				ok, failed := n.sealFrame(now, s, c, &o.Frame)
				err = cmp.Or(err, failed)
				if !ok {
					continue
				}
			}
			o.Frame.Peer, o.Frame.Mode = addr, c.mode()
			if replaceable {
				owner.Tag, owner.Index = uint32(tag), index
				index++
				if value != 0 {
					o.Frame.Value = value + uint64(index)
				}
			}
			n.enqueue(now, o.Frame, owner, busy, s, c)
		case microproto.OutMessage:
			c.composite.Recycle(o.Message) // endpoints keep what arrives for Receive
		}
	}
	clear(n.scratch)
	return err
}

// valueBase returns the number before microproto.Frame.Value of the first segment of a tag's value, unique among all
// segments that this node sends and never 0: session, slot, segment.
func (s *session) valueBase(tag Tag) uint64 { return uint64(s.index()+1)<<48 | uint64(s.slot(tag))<<32 }

// addr returns the other end's address on the channel's rail.
func (c *channel) addr(s *session) microproto.LinkAddr {
	if c.Path == nil {
		return s.peer.Link
	}
	return c.Addr
}

func (n *Node) enqueue(now microproto.Instant, f microproto.Frame, owner rail.Owner, busy bool, s *session,
	c *channel) {
	w := &c.Rail.Window
	switch {
	case busy && owner.Index >= 0 && w.Replace(f, owner): // as many frames are sent as before
		c.recordFrame(now, trace.Replaced, f, "the rail is busy")
		n.counters.FramesReplaced++
		s.past.Replaced += uint64(f.Count())
		return
	case w.Len() >= n.config.Limits.QueuedFrames && !n.displace(now, f, owner, c):
		c.recordFrame(now, trace.Dropped, f, "too many frames wait for the rail")
		f.Release()
		n.counters.FramesDropped++
		// No micro-protocol sends it again where the link is reliable.
		c.overflowed = c.mode() == microproto.ModeSynchronous && c.Rail.Link.Caps(c.mode()).Reliable
		return
	}
	w.Push(f, owner)
	if c.Path == nil {
		countFrame(&s.peer.frames.sent, &f)
		n.sentLong(now, s)
		s.peer.paths.Base.Sent(now)
	}
}

// displace drops an older frame that waits for the rail of f, if there is one of a lower class that may be lost. It does
// not count as sent: the path has not lost it.
func (n *Node) displace(now microproto.Instant, f microproto.Frame, owner rail.Owner, c *channel) bool {
	old, of, found := c.Rail.Window.Displace(owner.Class)
	if !found {
		return false
	}
	c.recordFrame(now, trace.Dropped, f, "displaced an older frame: too many wait for the rail")
	n.counters.FramesDropped++
	if s := n.session(SessionID(of)); s != nil && c.Path == nil {
		uncountFrame(&s.peer.frames.sent, &old)
	}
	return true
}

// closeChannel closes a channel's composites and adds their counters to the session's. Frames that
// the link has not taken stay queued.
func (n *Node) closeChannel(now microproto.Instant, s *session, c *channel) {
	if c.sealing != nil {
		_ = c.sealing.Close(now)
	}
	_ = c.composite.Close(now)
	n.scratch = c.composite.Drain(n.scratch[:0])
	for i := range n.scratch {
		o := &n.scratch[i]
		switch o.Kind {
		case microproto.OutFrame:
			o.Frame.Release()
		case microproto.OutMessage:
			c.composite.Recycle(o.Message)
		}
	}
	clear(n.scratch)
	c.addCounters(&s.past)
}

func (c *channel) addCounters(i *SessionInfo) {
	k := c.composite.Counters()
	i.SegmentsSent += k.Transmitted
	i.SegmentsReceived += k.SegmentsIn
	i.Dropped += k.Dropped + k.FramesRefused
	i.Retransmitted += valueOf(c.cells.retransmitted)
	i.Overwritten += valueOf(c.cells.overwritten)
	i.Replaced += valueOf(c.cells.replaced)
}

// cells are what the micro-protocols of a composite measure; nil where none does.
type cells struct {
	segmentBytes                         *int
	retransmitted, overwritten, replaced *uint64
	rtt, minRTT                          *time.Duration
	linkBusy                             *bool // set by tellLink
}

func cellsOf(c *microproto.Composite) (m cells) {
	m.segmentBytes, _ = microproto.CompositeCell[int](c, microproto.CellSegmentBytes)
	m.retransmitted, _ = microproto.CompositeCell[uint64](c, microproto.CellRetransmitted)
	m.overwritten, _ = microproto.CompositeCell[uint64](c, microproto.CellOverwritten)
	m.replaced, _ = microproto.CompositeCell[uint64](c, microproto.CellReplaced)
	m.linkBusy, _ = microproto.CompositeCell[bool](c, microproto.CellLinkBusy)
	m.rtt, _ = microproto.CompositeCell[time.Duration](c, microproto.CellRTT)
	m.minRTT, _ = microproto.CompositeCell[time.Duration](c, microproto.CellMinRTT)
	return m
}

// busyFrames is the number of frames that wait for a link from which it counts as busy. Its own queue is full then: it
// holds about a millisecond of the device's rate.
const busyFrames = 16

// tellLink sets CellLinkBusy. Call it before the composite.
func (c *channel) tellLink() {
	if c.cells.linkBusy != nil {
		*c.cells.linkBusy = c.Rail.Window.Len() >= busyFrames
	}
}

// valueOf returns the value of a cell, 0 if there is none.
func valueOf[T uint64 | time.Duration](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

// unread returns the number of messages that wait in a synchronous endpoint.
func (c *channel) unread() uint64 { return c.inherited + c.endpoint.Arrivals() - c.taken }

// empty reports whether a Receive would find nothing, under any tag.
func (c *channel) empty() bool { return c.mode() == microproto.ModeSynchronous && c.unread() == 0 }
