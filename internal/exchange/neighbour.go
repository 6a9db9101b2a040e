package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Neighbour is the traffic over one link. The shell sets Halo and Agree before Start.
type Neighbour struct {
	iterate.Link
	Name  string
	Halo  Session // nil: the link has no faces
	Agree Session // nil: the link has no agreement messages

	own            iterate.Rank
	asynchronous   bool // the present mode of the halo session
	adaptRequested bool // the change of mode in progress was requested
	haloNews       bool // the session was touched since the last Poll, or has more messages
	agreeNews      bool
	views          []p2psap.View // of the newest faces, by tag
	message        p2psap.Slot   // of an agreement message
	buffers        [2]buffer
	newest         int           // index of the buffer that was used last
	sentAt         time.Duration // when a face was sent last
	newestLabel    uint64        // of the faces received

	// A neighbour closes its sessions once it knows the verdict, or because it has failed. A
	// send fails at once, and a receive when all messages of its tag have been read.
	haloClosed  bool
	agreeClosed bool
	haloRead    []bool // by tag
	agreeRead   bool
	hasClosed   bool
	lost        bool
	closedAt    time.Duration // by the clock of Age; negative before Age has seen it
}

func (x *Exchange) newNeighbour(l iterate.Link, number int) *Neighbour {
	n := &Neighbour{Link: l, Name: x.config.Name(l.Rank), own: x.config.Rank, asynchronous: l.Asynchronous, closedAt: -1}
	n.haloClosed, n.agreeClosed = !n.HasHalo(), l.Agreement == 0
	n.agreeRead = n.agreeClosed
	n.haloRead = make([]bool, len(l.Slots))
	n.views = make([]p2psap.View, len(l.Slots))
	n.message.Data = make([]byte, l.Agreement)
	for i := range n.buffers {
		n.buffers[i].number = len(n.buffers)*number + i
	}
	return n
}

// HasHalo reports whether faces travel over the link.
func (n *Neighbour) HasHalo() bool { return len(n.Slots)+len(n.Sent) > 0 }

// Newest returns the newest label of the faces received.
func (n *Neighbour) Newest() uint64 { return n.newestLabel }

// HaloOptions returns the options with which both ends open the session of faces.
func (n *Neighbour) HaloOptions() p2psap.OpenOptions {
	o := p2psap.OpenOptions{Name: n.sessionName("halo"), Mode: mode(n.asynchronous), Class: p2psap.ClassFace}
	for t, length := range n.Slots {
		o.Slots = append(o.Slots, p2psap.SlotSpec{Tag: p2psap.Tag(t), Length: length})
	}
	return o
}

// AgreeOptions returns the options with which both ends open the session of agreement messages.
func (n *Neighbour) AgreeOptions() p2psap.OpenOptions {
	return p2psap.OpenOptions{
		Name: n.sessionName("agree"), Mode: microproto.ModeSynchronous, Class: p2psap.ClassAgreement,
		Slots: []p2psap.SlotSpec{{Length: n.Agreement}},
	}
}

// sessionName returns the same name at both ends.
func (n *Neighbour) sessionName(kind string) string {
	return fmt.Sprintf("%s/%d-%d", kind, min(n.own, n.Rank), max(n.own, n.Rank))
}

func mode(asynchronous bool) microproto.Mode {
	if asynchronous {
		return microproto.ModeAsynchronous
	}
	return microproto.ModeSynchronous
}

// NeighbourError reports that the run cannot continue because of one neighbour: it was lost (errors.As finds a
// *p2psap.PeerLostError), it left early (p2psap.ErrPeerClosed), or it sent a message that no peer of this run sends.
type NeighbourError struct {
	Rank iterate.Rank
	Peer string // its name
	Err  error
}

// Error implements error.
func (e *NeighbourError) Error() string {
	what := "cannot go on with"
	var lost *p2psap.PeerLostError
	switch {
	case errors.As(e.Err, &lost):
		what = "lost"
	case errors.Is(e.Err, p2psap.ErrPeerClosed):
		what = "left too early by"
	}
	return fmt.Sprintf("exchange: %s rank %d: %v", what, e.Rank, e.Err)
}

// Unwrap returns the cause.
func (e *NeighbourError) Unwrap() error { return e.Err }

// Fail returns a NeighbourError.
func (n *Neighbour) Fail(err error) error { return &NeighbourError{n.Rank, n.Name, err} }

// close sets *which because a neighbour has closed a session, or is lost and Config.Survive is set. It returns any other
// error.
func (x *Exchange) close(n *Neighbour, which *bool, err error) error {
	var lost *p2psap.PeerLostError
	switch {
	case x.config.Survive && errors.As(err, &lost):
		x.Lose(n.Rank, err)
	case !errors.Is(err, p2psap.ErrPeerClosed):
		return n.Fail(err)
	}
	*which = true
	n.hasClosed, x.closed = true, true
	return nil
}

// Lose makes the sessions with a lost neighbour count as closed: no message is sent to it or received from it any more.
func (x *Exchange) Lose(q iterate.Rank, why error) {
	n := x.byRank[q]
	if n == nil || n.lost {
		return
	}
	if n.lost = true; x.config.Lost != nil {
		x.config.Lost(q, why)
	}
	n.haloClosed, n.agreeClosed, n.agreeRead = true, true, true
	for t := range n.haloRead {
		n.haloRead[t] = true
	}
	n.hasClosed, x.closed = true, true
}

// Never is a time that no run reaches.
const Never = time.Duration(1<<63 - 1)

// Age returns an error once a neighbour has closed its sessions for longer than patience without a verdict, which
// the neighbour knew unless it failed. With Config.Survive that neighbour counts as lost instead. now may be any clock of
// the shell. Age returns when the time of the next neighbour ends.
func (x *Exchange) Age(now, patience time.Duration) (next time.Duration, err error) {
	next = Never
	if !x.closed {
		return next, nil
	}
	for _, n := range x.neighbours {
		if !n.hasClosed || n.lost {
			continue
		}
		if n.closedAt < 0 {
			n.closedAt = now
		}
		if waited := now - n.closedAt; waited >= patience {
			err := fmt.Errorf("no verdict %v after it had left: %w", waited.Round(time.Millisecond), p2psap.ErrPeerClosed)
			if !x.config.Survive {
				return now, n.Fail(err)
			}
			x.Lose(n.Rank, err)
			continue
		}
		next = min(next, n.closedAt+patience)
	}
	return next, nil
}
