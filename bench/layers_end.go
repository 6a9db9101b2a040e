package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// layer is one end of the layers below a session: the UDP link alone, or with the composite of the reliable column
// within a cluster above it. A call runs all of it, without node and driver.
type layer struct {
	link   *ether.Link
	to     microproto.LinkAddr
	asleep bool // Recv waits at the link instead of polling it
	batch  []microproto.Frame

	composite *microproto.Composite // nil: the link alone
	calling   sync.Mutex            // held during a call; guards what follows
	failed    error                 // between calls
	begin     time.Time
	out       []microproto.Output
	label     uint64
	last      uint64 // transfer

	// Arguments and result of send and take, which are made once so that a call allocates nothing.
	data       []byte
	err        error
	send, take func(x *microproto.Exec)
}

// lossTimeout ends a test whose datagrams were lost: the link alone recovers none.
const lossTimeout = 5 * time.Second

// openLayer connects the two ends and, with composed, puts the composite above the link.
func (e *endpoint) openLayer(ctx context.Context, composed, asleep bool, announce func(string)) (*layer, error) {
	link, err := ether.Open(ether.Config{Listen: e.host})
	if err != nil {
		return nil, err
	}
	l := &layer{link: link, asleep: asleep, batch: make([]microproto.Frame, 64), begin: time.Now()}
	if err = l.meet(ctx, e, announce); err == nil && composed {
		if err = l.compose(); err == nil {
			go l.keepTime()
		}
	}
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	return l, nil
}

// meet exchanges the offers of the two links.
func (l *layer) meet(ctx context.Context, e *endpoint, announce func(string)) error {
	conn, err := e.openTCP(ctx, announce)
	if err != nil {
		return err
	}
	defer conn.ReadWriter.(net.Conn).Close()
	own, err := l.link.Offer("other")
	if err != nil {
		return err
	}
	if err := conn.Send(append(binary.BigEndian.AppendUint32(nil, uint32(len(own))), own...)); err != nil {
		return err
	}
	var size [4]byte
	if err := conn.Recv(size[:]); err != nil {
		return err
	}
	theirs, err := io.ReadAll(io.LimitReader(conn, int64(binary.BigEndian.Uint32(size[:]))))
	if err == nil {
		l.to, err = l.link.Accept(theirs)
	}
	return err
}

func (l *layer) compose() error {
	c, err := p2psap.TablePolicy{}.Compose(p2psap.Conditions{
		Mode: microproto.ModeSynchronous, Locality: p2psap.SameCluster, Network: p2psap.Ethernet,
	})
	if err != nil {
		return err
	}
	protocols, err := ctp.Catalog().Build(c.Protocols, c.Options)
	if err != nil {
		return err
	}
	caps := l.link.Caps(microproto.ModeSynchronous)
	l.composite, err = microproto.NewComposite(microproto.Config{
		Name: "layer", MTU: caps.MTU, Headroom: caps.Headroom, Frames: l.link, Train: caps.Train, Gather: caps.Gather,
	}, protocols...)
	if err != nil {
		return err
	}
	endpoint := l.composite.Endpoint()
	if err := endpoint.Slot(0, longestMessage); err != nil {
		return err
	}
	l.send = func(x *microproto.Exec) { l.last, l.err = endpoint.Send(x, 0, l.label, l.data) }
	l.take = func(x *microproto.Exec) { _, l.err = endpoint.Receive(x, 0, l.data, nil) }
	return l.composite.Open(l.now())
}

// keepTime runs the composite's timers between calls, and wakes a receiver that sleeps so that it does. It ends with
// the process. The driver has an alarm for that.
func (l *layer) keepTime() {
	for range time.Tick(5 * time.Millisecond) {
		if l.asleep {
			l.link.Wake()
		}
		if !l.calling.TryLock() {
			continue // a call runs the timers
		}
		if now := l.now(); l.composite.Deadline() <= now {
			if err := errors.Join(l.composite.Advance(now), l.drain()); err != nil {
				l.failed = err
			}
		}
		l.calling.Unlock()
	}
}

func (l *layer) now() microproto.Instant { return microproto.Instant(time.Since(l.begin)) }

// Send implements twonode.Channel.
func (l *layer) Send(data []byte) error {
	if l.composite == nil {
		return l.sendFrames(data)
	}
	l.calling.Lock()
	defer l.calling.Unlock()
	l.label++
	l.data = data
	for {
		err := errors.Join(l.composite.Do(l.now(), l.send), l.drain())
		if err == nil && errors.Is(l.err, microproto.ErrBusy) { // no credit
			if err = l.input(); err == nil {
				continue
			}
		}
		return errors.Join(err, l.err)
	}
}

// sendFrames sends data as a composite would cut it, without headers.
func (l *layer) sendFrames(data []byte) error {
	caps := l.link.Caps(microproto.ModeSynchronous)
	most := caps.MTU
	if caps.Train > 2*most {
		most = caps.Train / most * most
	}
	for len(data) > 0 {
		n := min(most, len(data))
		f := l.link.Acquire(n)
		f.Peer = l.to
		if n > caps.MTU {
			f.Segment = caps.MTU
		}
		copy(f.Data, data)
		if err := l.transmit(f); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (l *layer) transmit(f microproto.Frame) error {
	one := [1]microproto.Frame{f}
	for {
		n, err := l.link.Send(one[:])
		if n == 1 || err != nil {
			return err
		}
		room := make(chan struct{})
		l.link.Writable(func() { close(room) })
		<-room
	}
}

// drain sends the frames that the composite has made.
func (l *layer) drain() error {
	l.out = l.composite.Drain(l.out[:0])
	for i := range l.out {
		l.out[i].Frame.Peer = l.to
		if err := l.transmit(l.out[i].Frame); err != nil {
			return err
		}
	}
	return nil
}

// input waits until frames arrive or the composite's deadline passes. It passes the frames to the composite, or
// advances it if there are none: an acknowledgement then travels with an answer that follows at once.
func (l *layer) input() error {
	n, err := l.receive()
	for n == 0 && err == nil && l.composite.Deadline() > l.now() {
		n, err = l.receive()
	}
	for i := range n {
		err = errors.Join(err, l.composite.Input(l.now(), l.batch[i]))
	}
	if now := l.now(); n == 0 && l.composite.Deadline() <= now {
		err = errors.Join(err, l.composite.Advance(now))
	}
	return errors.Join(err, l.drain())
}

func (l *layer) receive() (int, error) {
	if l.asleep && (l.composite == nil || l.composite.Deadline() > l.now()) {
		return l.link.AwaitRecv(l.batch)
	}
	return l.link.TryRecv(l.batch)
}

// Flush implements twonode.Channel: it waits until the last message was accepted.
func (l *layer) Flush() error {
	if l.composite == nil {
		return nil
	}
	l.calling.Lock()
	defer l.calling.Unlock()
	for l.composite.Endpoint().Accepted() < l.last {
		if err := l.input(); err != nil {
			return err
		}
	}
	return l.failed
}

// Recv implements twonode.Channel.
func (l *layer) Recv(buf []byte) error {
	if l.composite == nil {
		return l.recvFrames(buf)
	}
	l.calling.Lock()
	defer l.calling.Unlock()
	l.data = buf
	for {
		err := l.composite.Do(l.now(), l.take)
		if err == nil && errors.Is(l.err, microproto.ErrNothing) {
			if err = l.input(); err == nil {
				continue
			}
		}
		return errors.Join(err, l.err)
	}
}

func (l *layer) recvFrames(buf []byte) error {
	begin := time.Now()
	for polls := 0; len(buf) > 0; polls++ {
		n, err := l.receive()
		if err != nil {
			return err
		}
		for i := range n {
			buf = buf[copy(buf, l.batch[i].Data):]
			l.batch[i].Release()
		}
		if polls%1024 == 1023 && time.Since(begin) > lossTimeout {
			return fmt.Errorf("%d bytes of a message were lost", len(buf))
		}
	}
	return nil
}
