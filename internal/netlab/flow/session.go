//go:build linux

package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// A session has one tag. The contents of messages follow from their numbers, so the receiver can check them.
const (
	tag          = p2psap.Tag(1)
	maxMessage   = 256 << 10
	defaultValue = 128 << 10

	defaultInterval = 10 * time.Millisecond
)

func endName(sends bool) string { return map[bool]string{true: "sender", false: "receiver"}[sends] }

// session runs one end of a session.
func (e *end) session() (c Counts, err error) {
	node, err := e.node()
	if err != nil {
		return c, err
	}
	defer node.Close()
	if !e.Sends {
		e.send(report{Ready: true, Port: node.ControlAddr().(*net.TCPAddr).Port})
	}
	ctx, cancel := context.WithTimeout(e.ctx, waitLimit)
	defer cancel()
	address := ""
	if e.Sends { // the sender connects
		address = net.JoinHostPort(e.Peer, fmt.Sprint(e.Port))
	}
	if err := node.Connect(ctx, endName(!e.Sends), address); err != nil {
		return c, err
	}
	length := maxMessage
	if e.Mode == microproto.ModeAsynchronous {
		length = e.valueBytes()
	}
	s, err := node.Open(ctx, endName(!e.Sends), p2psap.OpenOptions{
		Name: "flow", Mode: e.Mode, Slots: []p2psap.SlotSpec{{Tag: tag, Length: length}}, ReceiveBytes: 4 << 20,
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
	e.send(report{Open: true})
	switch {
	case e.Mode == microproto.ModeAsynchronous && e.Sends:
		err = e.sendValues(s, &c)
	case e.Mode == microproto.ModeAsynchronous:
		err = e.receiveValues(s, &c)
	case e.Sends:
		err = e.sendMessages(s, &c)
	default:
		err = e.receiveMessages(s, &c)
	}
	if e.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, p2psap.ErrClosed)) {
		err = nil // stopped by command
	}
	return c, err
}

// node returns the node of this end.
func (e *end) node() (*driver.Node, error) {
	listen := e.Listen
	if e.Everywhere {
		listen = netip.IPv4Unspecified().String()
	}
	link, err := ether.Open(ether.Config{Listen: listen})
	if err != nil {
		return nil, err
	}
	cluster := "one"
	if !e.Intra {
		cluster = endName(e.Sends)
	}
	// The protection is explicit, because the driver takes all hosts of a lab for the same machine.
	var identity *driver.Identity
	protect := p2psap.ProtectNever
	if e.Protected {
		protect = p2psap.ProtectAlways
		if identity, err = driver.NewKeyIdentity(driver.Key{}, "flow"); err != nil {
			return nil, err
		}
	}
	return driver.New(driver.Config{
		Identity: identity, Plain: identity == nil, Protect: protect,
		Name: endName(e.Sends), Rails: []driver.Rail{{Link: link}}, Listen: net.JoinHostPort(listen, "0"),
		Catalog: ctp.Catalog(), Policy: e.policy(), Run: "flow", Version: "flow", Cluster: cluster,
		Linger: 100 * time.Millisecond,
	})
}

// policy returns Table I with the optional rows of the flow.
func (e *end) policy() p2psap.Policy {
	column := p2psap.Column{Mode: e.Mode, Intra: e.Intra}
	var rows []p2psap.OptionalRow
	for _, name := range e.Optional {
		rows = append(rows, p2psap.OptionalRow{Protocol: name, Columns: []p2psap.Column{column}})
	}
	return p2psap.TablePolicy{Optional: rows}
}

func (e *end) valueBytes() int { return cmp.Or(e.Bytes, defaultValue) }

// factor spreads the numbers of messages over 64 bits, and inverse is its inverse modulo 2⁶⁴.
const factor, inverse = 0x9e3779b97f4a7c15, 0xf1de83e19937733d

// valueAt returns the number of the message that the 8 bytes at i are of.
func valueAt(data []byte, i int) uint64 {
	return (binary.LittleEndian.Uint64(data[i:]) - uint64(i)) * inverse
}

// fill writes the contents of message k.
func fill(data []byte, k uint64) {
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], k*factor+uint64(i))
	}
	for i := len(data) &^ 7; i < len(data); i++ {
		data[i] = byte(k)
	}
}

// check compares data with the contents of message k. want is scratch memory of at least the same length.
func check(data, want []byte, k uint64) error {
	fill(want[:len(data)], k)
	if !bytes.Equal(want[:len(data)], data) {
		return fmt.Errorf("message %d of %d bytes has wrong contents", k, len(data))
	}
	return nil
}

// sendMessages sends messages as commanded. A message must not change before it is accepted, so the
// buffers are used in turn.
func (e *end) sendMessages(s *driver.Socket, c *Counts) error {
	size := cmp.Or(e.Bytes, min(8*s.Info().SegmentSize, maxMessage))
	const window = 128
	tick := time.NewTicker(max(e.Interval, time.Nanosecond))
	defer tick.Stop()
	buffers := make([][]byte, window)
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
			if k > window {
				if err := accepted(p2psap.Transfer(k - window)); err != nil {
					return err
				}
			}
			data := buffers[k%window]
			fill(data, k)
			if _, err := s.Send(e.ctx, tag, p2psap.Label(k), data); err != nil {
				return err
			}
			if e.Interval > 0 {
				select {
				case <-tick.C:
				case <-e.ctx.Done():
					return e.ctx.Err()
				}
			}
		}
		if err := accepted(p2psap.Transfer(k)); err != nil {
			return err
		}
		e.send(report{Upto: k})
	}
	return nil
}

// receiveMessages checks that messages arrive once each, complete and in order.
func (e *end) receiveMessages(s *driver.Socket, c *Counts) error {
	slot, want := p2psap.Slot{Tag: tag, Data: make([]byte, maxMessage)}, make([]byte, maxMessage)
	for last := int64(0); ; c.arrived(&last) {
		a, err := s.Receive(e.ctx, &slot)
		if err != nil {
			if errors.Is(err, p2psap.ErrPeerClosed) {
				return nil
			}
			return err
		}
		if c.Messages++; a.Label != c.Messages {
			return fmt.Errorf("received message %d instead of %d", a.Label, c.Messages)
		}
		if err := check(slot.Data[:a.Length], want, a.Label); err != nil {
			return err
		}
		c.Bytes += uint64(a.Length)
		e.received.Store(c.Bytes)
	}
}

// sendValues sends a new value at every interval. Its label is the time.
func (e *end) sendValues(s *driver.Socket, c *Counts) error {
	data := make([]byte, e.valueBytes())
	count, more := e.next()
	if !more {
		return nil
	}
	tick := time.NewTicker(cmp.Or(e.Interval, defaultInterval))
	defer tick.Stop()
	for ; count != 0; count-- {
		k := uint64(Now())
		fill(data, k)
		if _, err := s.Send(e.ctx, tag, p2psap.Label(k), data); err != nil {
			return err
		}
		c.Messages++
		c.Bytes += uint64(len(data))
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return nil
		}
	}
	e.send(report{Upto: c.Messages})
	<-e.ctx.Done()
	return nil
}

// receiveValues receives values and checks that each segment belongs to the value of its label. After the segment size
// has changed, a part can hold bytes of several values, and has the smallest of their labels.
func (e *end) receiveValues(s *driver.Socket, c *Counts) error {
	slot := p2psap.Slot{Tag: tag, Data: make([]byte, e.valueBytes()), Labels: make([]microproto.SegmentLabel, 0, 1024)}
	last := int64(0)
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
		c.arrived(&last)
		oldest := uint64(Now())
		for _, l := range slot.Labels {
			oldest = min(oldest, l.Label)
			if l.Label == 0 {
				continue
			}
			for i := l.Offset; i+8 <= l.Offset+l.Length; i += 8 {
				if k := valueAt(slot.Data, i); k < l.Label || k > a.Newest {
					return fmt.Errorf("byte %d is of value %d, but its segment has label %d, and the newest is %d",
						i, k, l.Label, a.Newest)
				}
			}
		}
		if oldest > 0 { // the slot is complete
			c.Reads = append(c.Reads, Read{At: Now(), Oldest: int64(oldest)})
		}
		info := s.Info()
		c.Bytes = info.SegmentsReceived * uint64(info.SegmentSize)
		e.received.Store(c.Bytes)
	}
}
