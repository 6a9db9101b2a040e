package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// mesh is a network in memory that keeps the rules of p2psap.Socket. It can have small grants, late
// acceptance, lost values, and peers that are lost or leave. driver_test.go tests the real driver.
type mesh struct {
	mu    sync.Mutex
	nodes map[string]*meshNode
	rand  *rand.Rand
	grant int     // messages a synchronous session holds
	loss  float64 // probability that an asynchronous value is lost
	busy  float64 // probability that a synchronous send finds no room for a moment
	sends int     // until fuse runs
	fuse  func()
}

func newMesh(seed uint64) *mesh {
	return &mesh{nodes: map[string]*meshNode{}, rand: rand.New(rand.NewPCG(seed, 1)), grant: 4}
}

type meshNode struct {
	mesh    *mesh
	name    string
	arrived bool
	touches uint64
	lost    error
	wake    chan struct{}
	sockets map[string]*meshSocket
}

func (m *mesh) node(name string) *meshNode {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[name] == nil {
		m.nodes[name] = &meshNode{mesh: m, name: name, wake: make(chan struct{}, 1), sockets: map[string]*meshSocket{}}
	}
	return m.nodes[name]
}

// sent returns the number of messages that a node has sent on a session.
func (m *mesh) sent(node, session string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.nodes[node].sockets[session].sent)
}

// touch wakes the node; the lock is held.
func (n *meshNode) touch() {
	n.arrived = true
	n.touches++
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

type meshSocket struct {
	node     *meshNode
	peer     *meshSocket
	options  p2psap.OpenOptions
	opened   chan struct{} // closed when the other end has opened, too
	queue    []meshMessage
	accepted p2psap.Transfer
	sent     p2psap.Transfer
	received uint64
	closed   error
	mode     microproto.Mode
	asked    int        // calls of Adapt
	changed  chan error // ends the call in progress
}

type meshMessage struct {
	tag   p2psap.Tag
	label uint64
	data  []byte
}

func (n *meshNode) Open(ctx context.Context, peer string, o p2psap.OpenOptions) (runner.Socket, error) {
	other := n.mesh.node(peer)
	n.mesh.mu.Lock()
	s := &meshSocket{node: n, options: o, mode: o.Mode, opened: make(chan struct{})}
	if n.sockets[o.Name] != nil {
		n.mesh.mu.Unlock()
		return nil, fmt.Errorf("session %q opened twice", o.Name)
	}
	n.sockets[o.Name] = s
	if t := other.sockets[o.Name]; t != nil {
		s.peer, t.peer = t, s
		close(s.opened)
		close(t.opened)
	}
	n.mesh.mu.Unlock()
	select {
	case <-s.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fmt.Sprint(s.options) != fmt.Sprint(s.peer.options) {
		return nil, fmt.Errorf("session %q: %v here, %v there", o.Name, s.options, s.peer.options)
	}
	return s, nil
}

func (n *meshNode) WaitAny(ctx context.Context, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		n.mesh.mu.Lock()
		lost, arrived := n.lost, n.arrived
		n.arrived = false
		n.mesh.mu.Unlock()
		if lost != nil || arrived {
			return lost
		}
		select {
		case <-n.wake:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lose makes this node lost for all others.
// Disconnect implements runner.Node.
func (n *meshNode) Disconnect(string) error {
	n.mesh.mu.Lock()
	defer n.mesh.mu.Unlock()
	n.lost = nil
	return nil
}

func (n *meshNode) lose() {
	n.mesh.mu.Lock()
	defer n.mesh.mu.Unlock()
	err := &p2psap.PeerLostError{Peer: n.name, Silent: time.Second}
	for _, s := range n.sockets {
		if s.peer != nil {
			s.peer.closed = err
			s.peer.node.lost = err
			s.peer.node.touch()
		}
	}
}

// Pump has nothing to do: senders put messages into the queues.
func (n *meshNode) Pump() error { return nil }

// PollView copies what Poll returns to memory of the view.
func (s *meshSocket) PollView(tag p2psap.Tag, v *p2psap.View) (p2psap.Arrival, bool, error) {
	slot := p2psap.Slot{Tag: tag}
	for _, declared := range s.options.Slots {
		if declared.Tag == tag {
			slot.Data = make([]byte, declared.Length)
		}
	}
	a, fresh, err := s.Poll(&slot)
	if fresh {
		v.Swap(slot.Data[:a.Length])
	}
	return a, fresh, err
}

// Activity implements runner.Socket.
func (s *meshSocket) Activity() uint64 {
	s.node.mesh.mu.Lock()
	defer s.node.mesh.mu.Unlock()
	return s.node.touches
}

func (s *meshSocket) async() bool { return s.mode == microproto.ModeAsynchronous }

func (s *meshSocket) TrySend(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	m := s.node.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sends--; m.sends == 0 && m.fuse != nil {
		go m.fuse()
	}
	if s.closed != nil {
		return 0, s.closed
	}
	message := meshMessage{tag, uint64(label), data} // the caller's memory until it is accepted
	if s.async() {
		message.data = append([]byte(nil), data...)
		s.sent++
		s.accepted = s.sent
		if m.rand.Float64() < m.loss {
			return s.sent, nil
		}
		for i := range s.peer.queue {
			if s.peer.queue[i].tag == tag { // the newest value replaces it
				s.peer.queue[i] = message
				s.peer.node.touch()
				return s.sent, nil
			}
		}
	} else {
		if m.rand.Float64() < m.busy {
			s.node.touch()
			return 0, p2psap.ErrBusy
		}
		if len(s.peer.queue) >= m.grant {
			return 0, p2psap.ErrBusy
		}
		s.sent++
	}
	s.peer.queue = append(s.peer.queue, message)
	s.peer.node.touch()
	return s.sent, nil
}

// accept stores the messages sent to this end, as late as the rules allow.
func (s *meshSocket) accept() {
	if s.async() || s.peer.accepted == s.peer.sent {
		return
	}
	for i := range s.queue {
		s.queue[i].data = append([]byte(nil), s.queue[i].data...)
	}
	s.peer.accepted = s.peer.sent
	s.peer.node.touch()
}

func (s *meshSocket) Poll(slot *p2psap.Slot) (p2psap.Arrival, bool, error) {
	m := s.node.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	var lost *p2psap.PeerLostError
	if errors.As(s.closed, &lost) {
		return p2psap.Arrival{}, false, s.closed
	}
	s.accept()
	for i, x := range s.queue {
		if x.tag != slot.Tag {
			continue
		}
		s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
		n := copy(slot.Data, x.data)
		s.received++
		if !s.async() {
			s.peer.node.touch()
		}
		return p2psap.Arrival{Label: x.label, Newest: x.label, Length: n, Fresh: true, Complete: true}, true, nil
	}
	return p2psap.Arrival{}, false, s.closed
}

func (s *meshSocket) Wait(ctx context.Context, t p2psap.Transfer) (p2psap.Ready, error) {
	m := s.node.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.accepted >= t {
		return p2psap.Ready{Accepted: true}, nil
	}
	return p2psap.Ready{}, ctx.Err() // the runner asks with a context that has ended
}

func (s *meshSocket) Reserve(p2psap.Tag, int) []byte { return nil }

func (s *meshSocket) Send(context.Context, p2psap.Tag, p2psap.Label, []byte) (p2psap.Transfer, error) {
	return 0, errors.New("the runner never blocks in Send")
}

func (s *meshSocket) Receive(context.Context, *p2psap.Slot) (p2psap.Arrival, error) {
	return p2psap.Arrival{}, errors.New("the runner never blocks in Receive")
}

func (s *meshSocket) ReceiveView(context.Context, p2psap.Tag, *p2psap.View) (p2psap.Arrival, error) {
	return p2psap.Arrival{}, errors.New("the runner never blocks in ReceiveView")
}

// Adapt changes the mode when both ends have called it equally often. Unread asynchronous values are
// lost. An unread synchronous message is an error here.
func (s *meshSocket) Adapt(ctx context.Context, mode microproto.Mode) error {
	m := s.node.mesh
	m.mu.Lock()
	s.asked++
	over := make(chan error, 1)
	s.changed = over
	if t := s.peer; t.asked == s.asked {
		var err error
		for _, e := range []*meshSocket{s, t} {
			if !e.async() && len(e.queue) > 0 {
				err = fmt.Errorf("session %q: %d messages are lost by a change of mode", e.options.Name, len(e.queue))
			}
		}
		for _, e := range []*meshSocket{s, t} {
			e.mode, e.queue = mode, nil
			e.changed <- err
		}
	}
	m.mu.Unlock()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *meshSocket) Close() error {
	m := s.node.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.peer != nil {
		s.peer.accept() // the last transfers linger until they are accepted
	}
	if s.peer != nil && s.peer.closed == nil {
		s.peer.closed = fmt.Errorf("session %q: %w", s.options.Name, p2psap.ErrPeerClosed)
		s.peer.node.touch()
	}
	return nil
}

func (s *meshSocket) Info() p2psap.SessionInfo {
	m := s.node.mesh
	m.mu.Lock()
	defer m.mu.Unlock()
	return p2psap.SessionInfo{Name: s.options.Name, MessagesSent: uint64(s.sent), MessagesReceived: s.received}
}
