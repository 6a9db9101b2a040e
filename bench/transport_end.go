package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/stream"
	"github.com/p2pdc/p2pdc/trace"
)

// The transports that this program implements.
const (
	kindOurs         = "p2psap"
	kindSealed       = "p2psap-sealed" // protected, as between hosts
	kindAsync        = "p2psap-async"
	kindShared       = "p2psap-shm"
	kindStream       = "p2psap-stream" // over kernel TCP
	kindSealedStream = "p2psap-stream-sealed"
	kindChosen       = "p2psap-chosen" // UDP or kernel TCP, whichever the nodes find faster
	kindLink         = "link"          // of UDP, alone
	kindComposite    = "composite"     // above that link
	kindTCP          = "tcp"
	kindDatagrams    = "udp" // a system call for each message, and nothing else
)

// asleepSuffix is appended to the kinds link, composite and p2psap: a receiver sleeps instead of polling.
const asleepSuffix = "-asleep"

// callSizes are the lengths of messages whose asynchronous Send is timed; each has a slot.
var callSizes = [...]int{8, 128 << 10}

// longestMessage bounds the messages of a synchronous session, bytes.
const longestMessage = 1 << 20

// endpoint is one end of a transport, as the command line sets it.
type endpoint struct {
	kind string
	host string        // address of this end
	call string        // address of the other end; "": this end waits to be called
	poll time.Duration // driver.Config.BusyPoll
	ring *trace.Ring   // nil: nothing is recorded
}

// serve runs one end. The end that waits to be called writes its address as the first line.
func (e *endpoint) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	announce := func(address string) { fmt.Fprintln(out, address) }
	c, err := e.open(ctx, announce)
	if err != nil {
		return err
	}
	err = twonode.Serve(c, e.call != "", in, out)
	if s, ok := c.(*session); ok {
		err = errors.Join(err, s.node.Close())
	}
	return err
}

func (e *endpoint) open(ctx context.Context, announce func(string)) (twonode.Channel, error) {
	e.kind, e.ring = traced(e.kind)
	kind, asleep := strings.CutSuffix(e.kind, asleepSuffix)
	if asleep {
		e.poll = -1
	}
	switch kind {
	case kindLink, kindComposite:
		return e.openLayer(ctx, kind == kindComposite, asleep, announce)
	case kindTCP:
		return e.openTCP(ctx, announce)
	case kindDatagrams:
		return newDatagrams(e, announce)
	case kindOurs:
		return e.openSession(ctx, microproto.ModeSynchronous, nil, announce)
	case kindShared, kindStream, kindChosen:
		return e.openRail(ctx, nil, announce)
	case kindSealed, kindSealedStream:
		identity, err := driver.NewKeyIdentity(driver.Key{}, "bench")
		if err != nil {
			return nil, err
		}
		if kind == kindSealedStream {
			return e.openRail(ctx, identity, announce)
		}
		return e.openSession(ctx, microproto.ModeSynchronous, identity, announce)
	case kindAsync:
		return e.openSession(ctx, microproto.ModeAsynchronous, nil, announce)
	}
	all := []string{kindOurs, kindSealed, kindAsync, kindShared, kindStream, kindSealedStream, kindChosen,
		kindTCP, kindDatagrams}
	return nil, fmt.Errorf("-end %s: there are %s", e.kind, strings.Join(all, ", "))
}

// openTCP opens a TCP connection with the congestion control reno.
func (e *endpoint) openTCP(ctx context.Context, announce func(string)) (c twonode.ByteStream, err error) {
	if e.call != "" {
		d := net.Dialer{Control: reno}
		c.ReadWriter, err = d.DialContext(ctx, "tcp", e.call)
		return c, err
	}
	lc := net.ListenConfig{Control: reno}
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(e.host, "0"))
	if err != nil {
		return c, err
	}
	defer l.Close()
	announce(l.Addr().String())
	c.ReadWriter, err = l.Accept()
	return c, err
}

// session is a session of P2PSAP between two nodes, made as a program makes them.
type session struct {
	ctx    context.Context
	node   *driver.Node
	socket *driver.Socket
	last   p2psap.Transfer
	label  p2psap.Label
	slot   p2psap.Slot
	async  bool
}

// names returns the names of the nodes of this end and of the other.
func (e *endpoint) names() (self, other string) {
	if e.call != "" {
		return "caller", "called"
	}
	return "called", "caller"
}

// openRail opens a synchronous session over shared memory or kernel TCP; with an identity it is protected.
func (e *endpoint) openRail(ctx context.Context, identity *driver.Identity, announce func(string)) (*session, error) {
	self, other := e.names()
	rail, err := driver.Rail{Network: p2psap.SharedMemory}, error(nil)
	if e.kind != kindShared {
		rail.Network, rail.Compare = p2psap.Stream, e.kind == kindChosen
		rail.Link, err = stream.Open(stream.Config{Name: self, Listen: e.host})
	} else {
		rail.Link, err = shm.Open(shm.Config{Name: self})
	}
	if err != nil {
		return nil, err
	}
	s, err := e.openSession(ctx, microproto.ModeSynchronous, identity, announce, rail)
	if err != nil {
		return nil, err
	}
	if i := s.socket.Info(); i.Conditions.Network != rail.Network && !rail.Compare {
		return nil, errors.Join(fmt.Errorf("no %v with %s: %s", rail.Network, other, i.NetworkReason), s.node.Close())
	}
	return s, nil
}

// openSession opens a session; with an identity it is protected. The rails are added to Ethernet.
func (e *endpoint) openSession(
	ctx context.Context, mode microproto.Mode, identity *driver.Identity, announce func(string), rails ...driver.Rail,
) (*session, error) {
	self, other := e.names()
	protect := p2psap.ProtectNever
	if identity != nil {
		protect = p2psap.ProtectAlways
	}
	link, err := ether.Open(ether.Config{Listen: e.host})
	if err != nil {
		return nil, err
	}
	node, err := driver.New(driver.Config{
		Identity: identity, Plain: identity == nil, Protect: protect,
		Name: self, Run: "bench", Cluster: "bench", BusyPoll: e.poll,
		Rails: append([]driver.Rail{{Link: link}}, rails...), Listen: net.JoinHostPort(e.host, "0"),
		Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Trace: e.ring,
	})
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if e.call == "" {
		announce(node.ControlAddr().String())
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := node.Connect(ctx, other, e.call); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	o := p2psap.OpenOptions{
		Name: "bench", Mode: mode, ReceiveBytes: 4 << 20, Slots: []p2psap.SlotSpec{{Length: longestMessage}},
	}
	if mode == microproto.ModeAsynchronous {
		o.Slots = nil
		for tag, length := range callSizes {
			o.Slots = append(o.Slots, p2psap.SlotSpec{Tag: p2psap.Tag(tag), Length: length})
		}
	}
	socket, err := node.Open(ctx, other, o)
	s := &session{ctx: context.Background(), node: node, socket: socket, async: mode == microproto.ModeAsynchronous}
	return s, err
}

// tag returns the slot for messages of a length. A synchronous session has one queue.
func (s *session) tag(length int) p2psap.Tag {
	for tag, l := range callSizes {
		if s.async && l == length {
			return p2psap.Tag(tag)
		}
	}
	return 0
}

func (s *session) Send(data []byte) (err error) {
	s.label++
	s.last, err = s.socket.Send(s.ctx, s.tag(len(data)), s.label, data)
	return err
}

// Flush waits until all messages have been accepted. It leaves those that arrive to Recv.
func (s *session) Flush() error {
	for !s.async && s.last > 0 {
		r, err := s.socket.Wait(s.ctx, s.last)
		if err != nil {
			return err
		}
		if r.Accepted {
			s.last = 0
		}
	}
	return nil
}

func (s *session) Recv(buf []byte) error {
	s.slot.Tag, s.slot.Data = s.tag(len(buf)), buf
	for {
		a, err := s.socket.Receive(s.ctx, &s.slot)
		if err != nil || a.Fresh {
			return err
		}
		if _, err := s.socket.Wait(s.ctx, 0); err != nil {
			return err
		}
	}
}
