package rendezvous

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// A connection between two hosts that several cables join goes on over another one when its own carries nothing: the peer
// dials the addresses of the launcher, and both ends send again what the other has not received. Messages are counted, by
// both ends, from Welcome on.

// kept is the state of such a connection, guarded by Conn.mu.
type kept struct {
	id       []byte
	counts   bool // Welcome has passed
	sent     uint64
	frames   [][]byte // the last ones that were sent, which the other end has not acknowledged
	bytes    int      // of frames
	received uint64
	since    int        // of these, those that were not acknowledged
	stopped  bool       // the connection is being replaced
	waits    bool       // nothing more is written to it: it has failed, and may be replaced
	reads    bool       // Receive reads from it
	changed  *sync.Cond // of the fields above
	goOn     time.Duration
	redial   time.Duration
}

const (
	// keptBytes bounds the frames that are kept. While the other end leaves more unacknowledged, the connection cannot go
	// on over another cable.
	keptBytes = 16 << 20
	// ackEvery is the number of messages after which one is acknowledged.
	ackEvery = 16
	// goOnTime bounds the time for which an end whose connection has failed waits for another one, and redialTime that of
	// a handshake with the other end.
	goOnTime   = 2 * time.Second
	redialTime = 700 * time.Millisecond
)

// last prepares a connection for its continuation, before Welcome is sent or after it was received.
func (c *Conn) last(id []byte, counts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = &kept{id: id, counts: counts, changed: sync.NewCond(&c.mu), goOn: goOnTime, redial: redialTime}
}

// keep keeps the frame of a message that counts, and returns the connection to write it to; nil: none at present.
func (c *Conn) keep(m Message, frame []byte) (to net.Conn, counts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept
	if k == nil {
		return c.net, false
	}
	_, ack := m.(Received)
	_, first := m.(Welcome)
	counts = k.counts && !ack
	k.counts = k.counts || first
	if counts {
		k.sent++
		k.frames = append(k.frames, bytes.Clone(frame))
		if k.bytes += len(frame); k.bytes > keptBytes {
			k.frames, k.bytes = nil, 0
		}
	}
	if k.stopped || k.waits {
		return nil, counts
	}
	return c.net, counts
}

// acknowledge drops the frames that the other end has received. It returns false if frames that it has not received are
// not kept.
func (k *kept) acknowledge(received uint64) bool {
	first := k.sent - uint64(len(k.frames)) // before the first one
	if received > k.sent || received < first {
		return false
	}
	for _, f := range k.frames[:received-first] {
		k.bytes -= len(f)
	}
	k.frames = slices.Delete(k.frames, 0, int(received-first))
	return true
}

// waits notes that the connection has failed with err, and reports whether another one may take its place.
func (c *Conn) waits(failed net.Conn, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waitsLocked(failed, err)
}

func (c *Conn) waitsLocked(failed net.Conn, err error) bool {
	k := c.kept
	switch {
	case k == nil || !k.counts || c.closed:
		return false
	case k.stopped || c.net != failed: // it was replaced
		return true
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, ErrMalformed} {
		if errors.Is(err, e) {
			return false // its process has ended, or it is of another kind
		}
	}
	k.waits = true
	return true
}

// allowed returns the kinds that may be received.
func (c *Conn) allowed(only []Kind) []Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(only) > 0 && c.kept != nil {
		return append(slices.Clip(only), KindReceived)
	}
	return only
}

// source returns what to read from, after the end of a replacement.
func (c *Conn) source() (in *bufio.Reader, from net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept; k != nil {
		for k.stopped && !c.closed {
			k.changed.Wait()
		}
		k.reads = true
	}
	if c.in == nil { // no memory is allocated before the other end is authenticated
		c.in = bufio.NewReaderSize(c.net, readStep)
	}
	return c.in, c.net
}

// received counts a message, or decides what follows from an error. It reports whether to read again.
func (c *Conn) received(from net.Conn, m Message, failed error) (again bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept
	if k == nil {
		return false, failed
	}
	k.reads = false
	k.changed.Broadcast()
	if failed != nil {
		if !c.waitsLocked(from, failed) {
			return false, failed
		}
		late := time.AfterFunc(k.goOn, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			k.changed.Broadcast()
		})
		defer late.Stop()
		for end := time.Now().Add(k.goOn); c.net == from && !c.closed; k.changed.Wait() {
			if !time.Now().Before(end) {
				return false, failed
			}
		}
		return !c.closed, failed
	}
	if a, is := m.(Received); is {
		k.acknowledge(a.Received)
		return true, nil
	}
	k.received++
	if k.since++; k.since >= ackEvery {
		k.since = 0
		go func(n uint64) { _ = c.Send(Received{n}) }(k.received) // this end goes on reading
	}
	return false, nil
}

// stop ends the use of the present connection and returns the number of messages that have arrived. It does not close it: the
// other end would take that for the end of this process.
func (c *Conn) stop() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept
	k.stopped = true
	_ = c.tcp.SetDeadline(time.Unix(1, 0)) // in the past
	for k.reads {
		k.changed.Wait()
	}
	return k.received
}

// resume goes on over another connection, whose end has received that many messages, after stop. answer, if not nil, is
// sent first.
func (c *Conn) resume(by *Conn, received uint64, answer Message) bool {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	k := c.kept
	ok := k.acknowledge(received) && !c.closed
	frames := slices.Clone(k.frames)
	c.mu.Unlock()
	if ok && answer != nil {
		ok = by.Send(answer) == nil
	}
	c.mu.Lock()
	former := c.tcp
	if ok {
		c.tcp, c.net, c.in = by.tcp, by.net, by.in
		if c.dead > 0 {
			_ = closeWhenDead(c.tcp, c.dead)
		}
	}
	k.stopped, k.waits = false, false
	k.changed.Broadcast()
	c.mu.Unlock()
	_ = former.Close()
	if !ok {
		_ = by.Close()
		return false
	}
	for _, f := range frames {
		if err := c.write(by.net, f); err != nil {
			return c.waits(by.net, err)
		}
	}
	return true
}

// adopt is the launcher's part of a continuation. It waits for the end of an earlier one, and reports whether the
// connection goes on.
func (c *Conn) adopt(by *Conn, received uint64) bool {
	c.mu.Lock()
	for c.kept.stopped && !c.closed {
		c.kept.changed.Wait()
	}
	closed := c.closed
	c.kept.stopped = !closed // before another continuation
	c.mu.Unlock()
	if closed {
		_ = by.Close()
		return false
	}
	return c.resume(by, received, Received{c.stop()})
}

// Times of the peer's end.
const (
	watchEvery = 50 * time.Millisecond
	// silentTime is how much longer than two round trips the other host has to owe an acknowledgement until its other
	// addresses are dialled.
	silentTime = 250 * time.Millisecond
)

// keepUp watches a connection to the launcher, and has it go on at another of its addresses when it carries nothing.
func (c *Conn) keepUp(id Identity, j Join, addresses []string) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	owed := time.Duration(0) // counted in ticks, which do not elapse while this process is stopped
	for range tick.C {
		c.mu.Lock()
		closed, failed, tcp := c.closed, c.kept.waits, c.tcp
		c.mu.Unlock()
		if closed {
			return
		}
		quiet, rtt := owing(tcp)
		if owed += watchEvery; quiet < watchEvery {
			owed = 0
		}
		if failed || owed >= silentTime+2*rtt {
			owed = 0
			_ = c.reconnect(id, j, addresses)
		}
	}
}

// ended reports whether the process at the other end of a connection has ended: its host refuses another one, at the address
// of this one or at another that is surely its own. Beyond the networks of this host, an address may be that of another host, too.
func ended(refused []string, present string, neighbour func(address string) bool) bool {
	return slices.ContainsFunc(refused, func(a string) bool { return a == present || neighbour(a) })
}

// reconnect dials the addresses of the launcher, that of the present connection last, and goes on over the first that
// answers.
func (c *Conn) reconnect(id Identity, j Join, addresses []string) error {
	order := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == c.Remote() })
	tcp, err := driver.DialAny(context.Background(), c.kept.redial, append(order, c.Remote()))
	if err != nil {
		if ended(driver.Refused(err), c.Remote(), driver.Neighbour) {
			_ = c.Close()
		}
		return err
	}
	by := NewConn(tcp, c.sendTimeout)
	expire := time.AfterFunc(c.kept.redial, func() { _ = tcp.Close() })
	defer expire.Stop()
	stopped := false
	j.Purpose, j.Standing = ToReconnect, nil
	err = by.introduce(id, func() Join {
		expire.Stop() // from here on the former connection is gone
		stopped = true
		j.Reconnect = &Reconnect{c.kept.id, c.stop()}
		return j
	})
	var m Message
	if err == nil {
		m, err = by.ReceiveWithin(c.kept.goOn, KindReceived, KindRefuse)
	}
	if r, is := m.(Received); err == nil && is && c.resume(by, r.Received, nil) {
		return nil
	}
	_ = tcp.Close()
	if stopped {
		_ = c.Close()
	}
	return err
}
