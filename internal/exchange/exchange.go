// Package exchange connects the operations of a peer with the sessions to its neighbours. It is a pure state machine:
// time is an argument, no call blocks, and there is no goroutine, clock or lock. Package runner drives it in real
// time over sockets, the simulator in virtual time over p2psap.Node, so both run the same exchange.
//
// With each neighbour there are two sessions: "halo/3-4", in the mode of the scheme of
// iteration, and "agree/3-4", which is always synchronous. The shell
//
//  1. calls New, opens the sessions that Neighbour.Options describes, and calls Start;
//  2. calls Next repeatedly and carries out the Action that it returns;
//  3. calls Poll to receive messages between two parts of a sweep;
//  4. calls Age periodically, which returns an error once a neighbour has closed its sessions without a verdict.
package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Session is one end of a session with a neighbour. No method blocks.
type Session interface {
	// Receive copies the oldest message of slot.Tag. Arrival.Fresh reports whether there was one. waits reports that
	// the peer can do nothing before a message arrives.
	Receive(slot *p2psap.Slot, waits bool) (p2psap.Arrival, error)
	// View sets v to the oldest message of a tag, or in asynchronous mode to the newest value.
	View(tag p2psap.Tag, v *p2psap.View, waits bool) (p2psap.Arrival, error)
	// Reserve returns n bytes of the network's memory for the next message of a tag, which Send then does not copy; nil:
	// there is none. In asynchronous mode the message may be sent again until the next Reserve.
	Reserve(tag p2psap.Tag, n int) []byte
	// Send starts a transfer. p2psap.ErrBusy: the receiver has no room yet.
	Send(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error)
	// Accepted reports whether the receiver has stored the transfer.
	Accepted(t p2psap.Transfer) (bool, error)
	// Adapt asks for a mode of communication, and Adapted reports whether the session has changed to it at both ends.
	Adapt(mode microproto.Mode) error
	Adapted() (bool, error)
}

// Peer is what the exchange needs of a peer; see iterate.Peer.
type Peer interface {
	Next(now time.Duration) iterate.Op
	Pack(op iterate.Op, dst []byte)
	Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error
	Agree(now time.Duration, q iterate.Rank, msg []byte) error
	Links() []iterate.Link
}

// Memory lends the buffers of the faces that are sent. Buffers are numbered from 0.
type Memory interface {
	// Take returns n bytes for a buffer.
	Take(buffer, n int) []byte
	// Give takes the bytes of a buffer back once the session does not need them any more.
	Give(buffer int, b []byte)
}

// Config describes an Exchange. Rank, Peer and Name are required.
type Config struct {
	Rank iterate.Rank
	Peer Peer
	// Name returns the name of a rank's node.
	Name func(iterate.Rank) string
	// Late, if not nil, sends the faces of a sweep only after the whole block has been relaxed.
	// It returns the points of the block.
	Late func() int
	// Memory lends the buffers of faces. If it is nil, faces are packed into memory of the network, or else into two
	// buffers for the whole run. Repeat sends faces again only then.
	Memory Memory
	// Pump, if not nil, is called at the beginning of every Poll, before the sessions are read that Touch has named. Its
	// error ends the run.
	Pump func() error
	// Survive makes a neighbour no error that is lost, that has closed its sessions without a verdict, or whose messages
	// no peer of this run sends. The peer then relaxes or waits until its shell ends the exchange.
	Survive bool
	// Lost, if not nil, is called once for each neighbour that Survive makes the peer go on without.
	Lost func(q iterate.Rank, why error)
}

// Kind is the kind of an Action.
type Kind uint8

// The kinds of actions.
const (
	Continue Kind = iota // something was done: call Next again
	Relax                // relax Op; call Next again when that is done
	Send                 // a message of Bytes bytes is about to be sent: charge its cost, call Next again
	Wait                 // nothing can be done before a session changes, or before Until (0: no limit)
	Blocked              // the operation in progress needs a session to change
	Step                 // the time step Op.Step is complete; call Next again
	Keep                 // carry out Op, an OpKeep or OpKept; call Next again when that is done
	Done                 // the peer has finished
)

// Action is what the shell must do. Op is valid until the next call of Next.
type Action struct {
	Kind  Kind
	Op    *iterate.Op
	Bytes int
	Until time.Duration
}

// Exchange carries the operations of one peer to its sessions. One goroutine uses it.
type Exchange struct {
	config     Config
	peer       Peer
	neighbours []*Neighbour
	byRank     map[iterate.Rank]*Neighbour
	op         iterate.Op // the operation that is being carried out
	pending    operation  // what is left of it
	late       []lateFace
	pointsLeft int  // with Config.Late: points of the sweep in progress that have not been relaxed
	waiting    bool // the newest Action was Wait
	news       bool // some session was touched
	closed     bool // some neighbour has closed a session

	adapting time.Duration // when the change of mode in progress began
	changes  int
	changing time.Duration
}

// New returns the exchange of a peer with the neighbours of its links.
func New(c Config) *Exchange {
	x := &Exchange{config: c, peer: c.Peer, byRank: map[iterate.Rank]*Neighbour{}}
	for _, l := range c.Peer.Links() {
		n := x.newNeighbour(l, len(x.neighbours))
		x.neighbours = append(x.neighbours, n)
		x.byRank[l.Rank] = n
	}
	return x
}

// Neighbours returns the neighbours in the order of the peer's links.
func (x *Exchange) Neighbours() []*Neighbour { return x.neighbours }

// Changes returns how often the mode of the halo sessions has changed at boundaries of time
// steps, and how long the peer waited for that.
func (x *Exchange) Changes() (n int, took time.Duration) { return x.changes, x.changing }

// Next carries out one operation of the peer, or continues one that is incomplete, and returns what the shell must
// do. now is the time since the start of the run. The exchange cannot be used after an error.
func (x *Exchange) Next(now time.Duration) (Action, error) {
	switch {
	case x.waiting:
		x.waiting = false
		_, err := x.poll(now, true)
		return Action{}, err
	case x.pending.kind != none:
		return x.proceed(now)
	case len(x.late) > 0 && x.pointsLeft <= 0:
		x.op, x.pending = x.late[0].op, x.late[0].operation
		x.late = append(x.late[:0], x.late[1:]...)
		return x.charge(), nil
	}
	x.op = x.peer.Next(now)
	return x.begin(now)
}

// begin starts the peer's operation.
func (x *Exchange) begin(now time.Duration) (Action, error) {
	switch op := &x.op; op.Kind {
	case iterate.OpRelax:
		if x.config.Late != nil {
			if x.pointsLeft <= 0 {
				x.pointsLeft = x.config.Late()
			}
			x.pointsLeft -= op.Points
		}
		return Action{Kind: Relax, Op: op}, nil
	case iterate.OpSend:
		return x.beginFace(), nil
	case iterate.OpAgree:
		x.pending = operation{kind: agreement, to: x.byRank[op.To]}
		return x.charge(), nil
	case iterate.OpWait:
		if news, err := x.poll(now, true); news || err != nil {
			return Action{}, err
		}
		x.waiting = true
		return Action{Kind: Wait, Until: op.Until}, nil
	case iterate.OpAdapt:
		for _, n := range x.neighbours {
			n.adaptRequested = false
		}
		x.adapting, x.pending = now, operation{kind: adaptation}
		return Action{}, nil
	case iterate.OpStep:
		return Action{Kind: Step, Op: op}, nil
	case iterate.OpKeep, iterate.OpKept:
		return Action{Kind: Keep, Op: op}, nil
	case iterate.OpFail:
		r, is := errors.AsType[*iterate.Refusal](op.Err)
		if !is || x.byRank[r.From] == nil {
			return Action{}, op.Err
		}
		if err := x.refuse(x.byRank[r.From], op.Err); err != nil {
			return Action{}, err
		}
		x.op = iterate.Op{Kind: iterate.OpWait}
		return x.begin(now)
	case iterate.OpDone:
		return Action{Kind: Done}, nil
	default:
		return Action{}, fmt.Errorf("exchange: the peer returned an unknown operation %d", op.Kind)
	}
}

// proceed continues the operation in progress. While it has to wait, messages are received.
func (x *Exchange) proceed(now time.Duration) (Action, error) {
	done, err := x.resume(now)
	if !done && err == nil {
		if _, err = x.poll(now, false); err == nil {
			done, err = x.resume(now)
		}
	}
	if !done && err == nil {
		return Action{Kind: Blocked}, nil
	}
	x.pending = operation{}
	return Action{}, err
}

// resume continues the operation in progress without waiting, and reports whether it has ended.
func (x *Exchange) resume(now time.Duration) (bool, error) {
	switch o := &x.pending; o.kind {
	case face:
		return x.pushFace(now, o)
	case agreement:
		var t p2psap.Transfer
		return x.transmit(o.to, o.to.Agree, &o.to.agreeClosed, true, 0, p2psap.Label(x.op.Label), x.op.Message, &t)
	case adaptation:
		return x.adapt(now, x.op.Asynchronous)
	}
	return true, nil
}

// operation is what is left of an operation that may have to wait in the middle.
type operation struct {
	kind   operationKind
	packed bool // the face is in its buffer
	to     *Neighbour
	buffer *buffer
}

// lateFace is a packed face that is sent at the end of its sweep.
type lateFace struct {
	operation
	op iterate.Op
}

type operationKind uint8

const (
	none operationKind = iota
	face
	agreement
	adaptation
)

// charge returns the Action for the message that is about to be sent.
func (x *Exchange) charge() Action {
	n := x.op.Bytes
	if x.pending.kind == agreement {
		n = len(x.op.Message)
	}
	return Action{Kind: Send, Bytes: n}
}
