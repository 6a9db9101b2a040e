//go:build linux

package flow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// A flow's session has one tag. The receiver knows what a message must hold.
const (
	tag          = p2psap.Tag(1)
	longest      = 256 << 10
	defaultValue = 128 << 10
)

func endName(sends bool) string { return map[bool]string{true: "sender", false: "receiver"}[sends] }

// session is either end of a session.
func (e *end) session() (c Counts, err error) {
	node, err := e.node()
	if err != nil {
		return c, err
	}
	defer node.Close()
	if !e.Sends {
		e.say(report{Ready: true, Port: node.ControlAddr().(*net.TCPAddr).Port})
	}
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	address := "" // the sender calls
	if e.Sends {
		address = net.JoinHostPort(e.Peer, fmt.Sprint(e.Port))
	}
	if err := node.Connect(ctx, endName(!e.Sends), address); err != nil {
		return c, err
	}
	length := longest
	if e.Mode == microproto.ModeAsynchronous {
		length = e.value()
	}
	receive := e.Receive
	if receive == 0 {
		receive = 4 << 20
	}
	s, err := node.Open(ctx, endName(!e.Sends), p2psap.OpenOptions{
		Name: "flow", Mode: e.Mode, Slots: []p2psap.SlotSpec{{Tag: tag, Length: length}}, ReceiveBytes: receive, Options: e.Options,
	})
	if err != nil {
		return c, err
	}
	defer func() {
		if e.Sends {
			err = errors.Join(err, s.Close())
		}
		c.Session = s.Info()
	}()
	e.say(report{Open: true})
	switch {
	case e.Mode == microproto.ModeAsynchronous && e.Sends:
		err = e.repeat(s, &c)
	case e.Mode == microproto.ModeAsynchronous:
		err = e.newest(s, &c)
	case e.Sends:
		err = e.send(s, &c)
	default:
		err = e.receive(s, &c)
	}
	if e.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, p2psap.ErrClosed)) {
		err = nil // it was told to stop
	}
	return c, err
}

// node makes this end's node.
func (e *end) node() (*driver.Node, error) {
	link, err := ether.Open(ether.Config{Listen: e.Listen})
	if err != nil {
		return nil, err
	}
	cluster := "one"
	if !e.Intra {
		cluster = endName(e.Sends)
	}
	identity, protect, err := e.protection()
	if err != nil {
		return nil, err
	}
	return driver.New(driver.Config{
		Identity: identity, Plain: identity == nil, Protect: protect,
		Name: endName(e.Sends), Rails: []driver.Rail{{Link: link}}, Listen: net.JoinHostPort(e.Listen, "0"),
		Catalog: ctp.Catalog(), Policy: e.policy(), Run: "flow", Version: "flow", Cluster: cluster,
		Linger: 100 * time.Millisecond,
	})
}

// protection is that between hosts, or none: the hosts of a lab are one to the driver.
func (e *end) protection() (*driver.Identity, p2psap.Protection, error) {
	if !e.Protected {
		return nil, p2psap.ProtectNever, nil
	}
	identity, err := driver.NewKeyIdentity(driver.Key{}, "flow")
	return identity, p2psap.ProtectAlways, err
}

// policy is Table I with the optional rows that the flow asks for.
func (e *end) policy() p2psap.Policy {
	column := p2psap.Column{Mode: e.Mode, Intra: e.Intra}
	var rows []p2psap.OptionalRow
	for _, name := range e.Optional {
		rows = append(rows, p2psap.OptionalRow{Protocol: name, Columns: []p2psap.Column{column}})
	}
	return p2psap.TablePolicy{Optional: rows}
}

func (e *end) value() int {
	if e.Bytes > 0 {
		return e.Bytes
	}
	return defaultValue
}

// fill writes what message k must hold, and check compares.
func fill(data []byte, k uint64) {
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], k*0x9e3779b97f4a7c15+uint64(i))
	}
	for i := len(data) &^ 7; i < len(data); i++ {
		data[i] = byte(k)
	}
}

func check(data []byte, k uint64) error {
	for i := 0; i+8 <= len(data); i += 8 {
		if binary.LittleEndian.Uint64(data[i:]) != k*0x9e3779b97f4a7c15+uint64(i) {
			return fmt.Errorf("message %d of %d bytes is wrong at byte %d", k, len(data), i)
		}
	}
	for i := len(data) &^ 7; i < len(data); i++ {
		if data[i] != byte(k) {
			return fmt.Errorf("message %d of %d bytes is wrong at byte %d", k, len(data), i)
		}
	}
	return nil
}

// send sends as ordered. Messages that are not accepted yet must not be changed, so
// the buffers go round, one more than are ever under way.
func (e *end) send(s *driver.Socket, c *Counts) error {
	size := e.Bytes
	if size == 0 {
		size = min(8*s.Info().SegmentSize, longest)
	}
	const under = 128
	buffers := make([][]byte, under)
	for i := range buffers {
		buffers[i] = make([]byte, size)
	}
	accepted := func(t p2psap.Transfer) error {
		for ready := (p2psap.Ready{}); !ready.Accepted; {
			var err error
			if ready, err = s.Wait(e.ctx, t); err != nil {
				return err
			}
		}
		c.Messages = max(c.Messages, uint64(t))
		c.Bytes = c.Messages * uint64(size)
		return nil
	}
	k := uint64(0)
	for count, more := e.next(); more; count, more = e.next() {
		for ; count != 0; count-- {
			k++
			if k > under {
				if err := accepted(p2psap.Transfer(k - under)); err != nil {
					return err
				}
			}
			data := buffers[k%under]
			fill(data, k)
			if _, err := s.Send(e.ctx, tag, p2psap.Label(k), data); err != nil {
				return err
			}
		}
		if err := accepted(p2psap.Transfer(k)); err != nil {
			return err
		}
		e.say(report{Upto: k})
	}
	return nil
}

// receive wants message after message, each once, in order and whole.
func (e *end) receive(s *driver.Socket, c *Counts) error {
	slot := p2psap.Slot{Tag: tag, Data: make([]byte, longest)}
	for {
		a, err := s.Receive(e.ctx, &slot)
		if err != nil {
			if errors.Is(err, p2psap.ErrPeerClosed) {
				return nil
			}
			return err
		}
		if c.Messages++; a.Label != c.Messages {
			return fmt.Errorf("message %d came where %d was due", a.Label, c.Messages)
		}
		if err := check(slot.Data[:a.Length], a.Label); err != nil {
			return err
		}
		c.Bytes += uint64(a.Length)
		e.received.Store(c.Bytes)
	}
}

// repeat sends a value again and again, a newer one each time.
func (e *end) repeat(s *driver.Socket, c *Counts) error {
	data := make([]byte, e.value())
	every := 10 * time.Millisecond
	if e.EveryMicros > 0 {
		every = time.Duration(e.EveryMicros) * time.Microsecond
	}
	count, more := e.next()
	if !more {
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for k := uint64(1); count != 0; count-- {
		fill(data, k)
		if _, err := s.Send(e.ctx, tag, p2psap.Label(k), data); err != nil {
			return err
		}
		c.Messages, c.Bytes = k, k*uint64(len(data))
		k++
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return nil
		}
	}
	e.say(report{Upto: c.Messages})
	<-e.ctx.Done()
	return nil
}

// newest reads whatever is new. Each segment must be a piece of the value that its
// label says.
func (e *end) newest(s *driver.Socket, c *Counts) error {
	slot := p2psap.Slot{Tag: tag, Data: make([]byte, e.value()), Labels: make([]microproto.SegmentLabel, 0, 1024)}
	for {
		if _, err := s.Wait(e.ctx, 0); err != nil {
			if errors.Is(err, p2psap.ErrPeerClosed) {
				return nil
			}
			return err
		}
		a, err := s.Receive(e.ctx, &slot)
		if err != nil {
			return err
		}
		if !a.Fresh {
			continue
		}
		c.Messages++
		for _, l := range slot.Labels {
			if l.Label == 0 {
				continue
			}
			for i := l.Offset; i+8 <= l.Offset+l.Length; i += 8 {
				if binary.LittleEndian.Uint64(slot.Data[i:]) != l.Label*0x9e3779b97f4a7c15+uint64(i) {
					return fmt.Errorf("byte %d is not of value %d, whose segment it is in", i, l.Label)
				}
			}
		}
		info := s.Info()
		c.Bytes = info.SegmentsReceived * uint64(info.SegmentSize)
		e.received.Store(c.Bytes)
	}
}
