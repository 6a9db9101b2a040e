package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/p2pdc/p2pdc/bench/internal/duel"
	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// The transports of which this program itself is an end.
const (
	kindOurs   = "p2psap"
	kindSealed = "p2psap-sealed" // protected, as it is between hosts
	kindAsync  = "p2psap-async"
	kindTCP    = "tcp"
	kindFloor  = "udp" // a system call a message, and nothing else
)

// callSizes are the messages whose asynchronous Send is timed, one slot each.
var callSizes = [...]int{8, 128 << 10}

// longestMessage bounds the messages of a synchronous session, bytes.
const longestMessage = 1 << 20

// serveEnd is one end of a transport: the one that waits to be called at an address
// of this host, whose first line says where, or the one that calls.
func serveEnd(ctx context.Context, kind, host, call string, in io.Reader, out io.Writer) error {
	var c duel.Channel
	var err error
	said := func(address string) { fmt.Fprintln(out, address) }
	switch kind {
	case kindTCP:
		c, err = newStream(ctx, host, call, said)
	case kindFloor:
		c, err = newDatagrams(host, call, said)
	case kindOurs:
		c, err = newSession(ctx, host, call, microproto.ModeSynchronous, nil, said)
	case kindSealed:
		var i *driver.Identity
		if i, err = driver.NewKeyIdentity(driver.Key{}, "bench"); err == nil {
			c, err = newSession(ctx, host, call, microproto.ModeSynchronous, i, said)
		}
	case kindAsync:
		c, err = newSession(ctx, host, call, microproto.ModeAsynchronous, nil, said)
	default:
		err = fmt.Errorf("-end %s: there are %s, %s, %s, %s and %s", kind, kindOurs, kindSealed, kindAsync, kindTCP, kindFloor)
	}
	if err != nil {
		return err
	}
	err = duel.Serve(c, call != "", in, out)
	if s, ok := c.(*session); ok {
		err = errors.Join(err, s.node.Close())
	}
	return err
}

// stream is a TCP connection with the congestion control reno.
type stream struct{ conn net.Conn }

func newStream(ctx context.Context, host, call string, said func(string)) (stream, error) {
	if call != "" {
		d := net.Dialer{Control: reno}
		conn, err := d.DialContext(ctx, "tcp", call)
		return stream{conn}, err
	}
	lc := net.ListenConfig{Control: reno}
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return stream{}, err
	}
	defer l.Close()
	said(l.Addr().String())
	conn, err := l.Accept()
	return stream{conn}, err
}

func (s stream) Send(data []byte) error {
	_, err := s.conn.Write(data)
	return err
}

func (s stream) Flush() error { return nil }

func (s stream) Recv(buf []byte) error {
	_, err := io.ReadFull(s.conn, buf)
	return err
}

// session is a session of our own, between two nodes as a program makes them.
type session struct {
	ctx    context.Context
	node   *driver.Node
	socket *driver.Socket
	last   p2psap.Transfer
	label  p2psap.Label
	slot   p2psap.Slot
	async  bool
}

func newSession(ctx context.Context, host, call string, mode microproto.Mode, i *driver.Identity, said func(string)) (*session, error) {
	names := [2]string{"called", "caller"}
	me := 0
	if call != "" {
		me = 1
	}
	link, err := ether.Open(ether.Config{Listen: host})
	if err != nil {
		return nil, err
	}
	protect := p2psap.ProtectNever
	if i != nil {
		protect = p2psap.ProtectAlways
	}
	node, err := driver.New(driver.Config{
		Identity: i, Plain: i == nil, Protect: protect,
		Name: names[me], Rails: []driver.Rail{{Link: link}}, Listen: net.JoinHostPort(host, "0"), Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Run: "bench", Cluster: "bench",
	})
	if err != nil {
		return nil, err
	}
	if me == 0 {
		said(node.ControlAddr().String())
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := node.Connect(ctx, names[1-me], call); err != nil {
		return nil, err
	}
	o := p2psap.OpenOptions{Name: "duel", Mode: mode, ReceiveBytes: 4 << 20, Slots: []p2psap.SlotSpec{{Length: longestMessage}}}
	if mode == microproto.ModeAsynchronous {
		o.Slots = nil
		for tag, length := range callSizes {
			o.Slots = append(o.Slots, p2psap.SlotSpec{Tag: p2psap.Tag(tag), Length: length})
		}
	}
	socket, err := node.Open(ctx, names[1-me], o)
	return &session{ctx: context.Background(), node: node, socket: socket, async: mode == microproto.ModeAsynchronous}, err
}

// tag is the slot of a length; a synchronous session has one queue.
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

// Flush waits until all has been accepted; what arrives meanwhile is left to Recv.
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
