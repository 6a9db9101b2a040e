package p2psap

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// channel is the data channel of a session in one epoch: a composition at work.
type channel struct {
	composite  *microproto.Composite
	endpoint   microproto.Endpoint
	gatherer   microproto.Coalescer // the endpoint, if it is one and the mode is synchronous
	prober     microproto.Prober    // nil: none of its micro-protocols is one
	conditions Conditions
	header     header // of outgoing frames
	held       bool   // its frames wait: the other end may not be ready for them
	short      bool   // its frames are shorter than the links', as the path demands
	// overflowed: a frame was lost that no micro-protocol repeats.
	overflowed bool
	// paced: a micro-protocol chooses what waits (microproto.CellReplaced). A frame that gave way here would be missing
	// at the other end, as if the network had lost it.
	paced bool

	ride

	first     uint64 // transfers that were complete before the endpoint's first
	inherited uint64 // unread messages that it was handed
	taken     uint64 // messages that Receive has taken from it

	frameBytes  int
	seal        *microproto.Composite // below it, in a session that is protected
	number      uint32                // changes of composition before it; the low byte is its epoch
	composition Composition
	cells       cells
}

func (c *channel) mode() microproto.Mode { return c.conditions.Mode }

// portAt is a port in the channel of that number. The epoch has 8 bits and wraps; the
// ports tell a frame of 256 epochs ago from one of today.
func portAt(port uint16, number uint32) int64 {
	return (int64(port)+65535-1+int64(number>>8))%65535 + 1
}

// compose builds a channel's composite for its frame size.
func (n *Node) compose(s *session, c *channel, theirs *open) error {
	c.short = c.way == nil && s.peer.frameLimit != 0 && c.frameBytes == s.peer.frameLimit
	options := maps.Clone(c.composition.Options)
	if options == nil {
		options = microproto.Options{}
	}
	if column, err := ColumnOf(c.conditions); err == nil && !column.Intra {
		if first := s.peer.measure.initialTimeout(); first > 0 {
			options[OptionRTOInitial] = int64(first)
		}
	}
	maps.Copy(options, s.options.Options)
	options[OptionReceiveBytes] = int64(s.options.ReceiveBytes)
	options[OptionPeerReceiveBytes] = int64(theirs.ReceiveBytes)
	options[OptionPortLocal] = portAt(s.mine.Port, c.number)
	if theirs.Port != 0 {
		options[OptionPortRemote] = portAt(theirs.Port, c.number)
	}
	protocols, err := n.config.Catalog.Build(c.composition.Protocols, options)
	if err != nil {
		return fmt.Errorf("p2psap: session %q: %w", s.options.Name, err)
	}
	config := microproto.Config{
		Name: s.options.Name + "@" + s.peer.name, Seed: n.config.Seed ^ uint64(s.id&0xffff)<<16 ^ uint64(c.number)<<32,
		MTU: c.frameBytes, Headroom: c.rail.link.Caps(c.mode()).Headroom, Frames: c.rail.link,
		Train: c.rail.link.Caps(c.mode()).Train, Gather: c.rail.link.Caps(c.mode()).Gather,
		Limits: n.config.Limits.Composite, Tracer: n.tracer(s),
	}
	c.composite, err = microproto.NewComposite(config, append(n.lower(s, &config), protocols...)...)
	if err != nil {
		return fmt.Errorf("p2psap: session %q: %w", s.options.Name, err)
	}
	if c.endpoint = c.composite.Endpoint(); c.endpoint == nil {
		return fmt.Errorf("p2psap: session %q: none of %v is an endpoint", s.options.Name, c.composition.Protocols)
	}
	if c.mode() == microproto.ModeSynchronous {
		c.gatherer, _ = c.endpoint.(microproto.Coalescer)
	}
	for _, p := range protocols {
		if q, ok := p.(microproto.Prober); ok {
			c.prober = q
		}
	}
	c.cells = cellsOf(c.composite)
	c.paced = c.cells.replaced != nil
	c.header = header{epoch: uint8(c.number), run: n.run, session: theirs.Session}
	return nil
}

// openComposite opens a channel's composite, one of a crowd where the node is.
func (n *Node) openComposite(now microproto.Instant, s *session, c *channel) error {
	if n.config.Crowd {
		c.composite.Prefetch(&s.busy, &s.watched.next, &s.change.agreed, &s.legacy.Unread, &s.info.MessagesSent, c)
	}
	return c.composite.Open(now)
}

// tracer is who sees the steps of a session's composites, nil: nobody.
func (n *Node) tracer(s *session) microproto.Tracer {
	if t, ok := n.config.Tracer.(SessionTracer); ok {
		return t.Session(s.options.Name)
	}
	return n.config.Tracer
}

// declare tells a channel's endpoint what the session's slots are.
func (s *session) declare(c *channel) error {
	for _, slot := range s.options.Slots {
		if err := c.endpoint.Slot(uint32(slot.Tag), slot.Length); err != nil {
			return fmt.Errorf("p2psap: session %q, tag %d: %w", s.options.Name, slot.Tag, err)
		}
	}
	return nil
}

// settle moves what a channel's composite has put out. tag is the tag of the Send
// that made it, -1 when something else did.
func (n *Node) settle(now microproto.Instant, s *session, c *channel, err error, tag int64) {
	if c.held {
		c.composite.Flatten()
	} else {
		err = cmp.Or(err, n.carry(now, s, c, tag))
	}
	if c.overflowed && err == nil {
		err = fmt.Errorf("%w: %d frames wait for a link that promises to lose none", ErrLimit, n.config.Limits.QueuedFrames)
	}
	if err != nil && !errors.Is(err, microproto.ErrNotOpen) {
		n.fail(now, s, err)
	}
}

// carry queues a composite's frames for the link.
func (n *Node) carry(now microproto.Instant, s *session, c *channel, tag int64) (err error) {
	n.scratch = c.composite.Drain(n.scratch[:0])
	index, value := int32(0), uint64(0)
	busy, peer := len(c.rail.queue.frames) > 0, c.peer(s)
	single := tag >= 0 && c.mode() == microproto.ModeAsynchronous && !c.paced
	if single && c.way != nil {
		value = s.value(Tag(tag))
	}
	for i := range n.scratch {
		o := &n.scratch[i]
		switch o.Kind {
		case microproto.OutFrame:
			if c.dead {
				o.Frame.Release()
				n.counters.FramesNoPath++
				continue
			}
			ok, failed := n.sealFrame(now, s, c, &o.Frame)
			err = cmp.Or(err, failed)
			if !ok {
				continue
			}
			o.Frame.Peer, o.Frame.Mode = peer, c.mode()
			owner := frameOwner{session: s.id, index: -1}
			if single {
				owner.tag, owner.index = Tag(tag), index
				index++
				if value != 0 {
					o.Frame.Value = value + uint64(index)
				}
			}
			n.enqueue(o.Frame, owner, busy, s, c)
		case microproto.OutMessage:
			c.composite.Recycle(o.Message) // endpoints keep what arrives for Receive
		}
	}
	clear(n.scratch)
	return err
}

// peer is the other end's address on the channel's rail.
func (c *channel) peer(s *session) microproto.LinkAddr {
	if c.way == nil {
		return s.peer.link
	}
	return c.addr
}

// value names the pieces of an asynchronous value among all that this node sends, the
// first by the next number: session, slot, piece.
func (s *session) value(tag Tag) uint64 {
	for i := range s.options.Slots {
		if s.options.Slots[i].Tag == tag {
			return uint64(s.id&0xffff)<<48 | uint64(i)<<32
		}
	}
	return 0
}

func (n *Node) enqueue(f microproto.Frame, owner frameOwner, busy bool, s *session, c *channel) {
	switch {
	case busy && owner.index >= 0 && c.rail.queue.replace(f, owner):
		n.counters.FramesReplaced++
		s.past.Replaced++
	case len(c.rail.queue.frames) >= n.config.Limits.QueuedFrames:
		f.Release()
		n.counters.FramesDropped++
		// Nobody below repeats it where the link is trusted to.
		c.overflowed = c.mode() == microproto.ModeSynchronous && c.rail.link.Caps(c.mode()).Reliable
	default:
		c.rail.queue.push(f, owner)
	}
}

// retire closes a channel; its counters go to the session. What it has put out and the
// link has not taken stays queued.
func (n *Node) retire(now microproto.Instant, s *session, c *channel) {
	n.lowerShield(now, c)
	_ = c.composite.Close(now)
	n.scratch = c.composite.Drain(n.scratch[:0])
	for i := range n.scratch {
		o := &n.scratch[i]
		if o.Kind == microproto.OutFrame {
			o.Frame.Release()
		} else if o.Kind == microproto.OutMessage {
			c.composite.Recycle(o.Message)
		}
	}
	clear(n.scratch)
	c.tally(&s.past)
}

// tally adds a channel's counters.
func (c *channel) tally(i *SessionInfo) {
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
}

func cellsOf(c *microproto.Composite) (m cells) {
	m.segmentBytes, _ = microproto.CompositeCell[int](c, microproto.CellSegmentBytes)
	m.retransmitted, _ = microproto.CompositeCell[uint64](c, microproto.CellRetransmitted)
	m.overwritten, _ = microproto.CompositeCell[uint64](c, microproto.CellOverwritten)
	m.replaced, _ = microproto.CompositeCell[uint64](c, microproto.CellReplaced)
	m.rtt, _ = microproto.CompositeCell[time.Duration](c, microproto.CellRTT)
	m.minRTT, _ = microproto.CompositeCell[time.Duration](c, microproto.CellMinRTT)
	return m
}

// valueOf returns the value of a cell, 0 if there is none.
func valueOf[T uint64 | time.Duration](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

// segmentBytes is the payload of the longest segment.
func (c *channel) segmentBytes() int {
	if c.cells.segmentBytes != nil {
		return *c.cells.segmentBytes
	}
	return c.composite.MaxPayload()
}
