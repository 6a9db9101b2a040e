//go:build linux

package netlab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Direction selects a direction of a link.
type Direction int

// Forth is the direction from the first host to the second, Back the reverse direction.
const (
	Forth Direction = iota
	Back
)

// Emulation describes an emulated link.
type Emulation struct {
	MTU         int // MTU of the interfaces in bytes, 1500 if 0
	Seed        uint64
	Urgent      bool // the link's thread has the priority UrgentLink, for measurements
	Forth, Back Conditions
}

// Link connects two hosts by TUN interfaces and a thread of this process that forwards packets under the
// given conditions. It carries some hundred Mbit/s and adds a delay of some microseconds. Its methods may
// be called from any goroutine.
type Link struct {
	A, B End

	done chan struct{}
	wake int // an eventfd
	tuns [2]tun

	mu      sync.Mutex
	begin   time.Time
	paths   [2]*path
	pool    *pool
	due     time.Duration // time of the next packet
	late    Lateness
	stopped bool
	err     error
}

// Lateness describes how late a link's thread forwarded packets, which limits the accuracy of measurements.
type Lateness struct {
	Worst time.Duration // largest lateness of a packet
	Often int           // number of times that a packet was late by more than a millisecond
}

// Emulate connects two hosts by an emulated link, or skips the test if there are no TUN devices. The
// addresses are assigned as by Join.
func (l *Lab) Emulate(a, b *Host, e Emulation) *Link {
	l.tb.Helper()
	e.MTU = cmp.Or(e.MTU, 1500)
	ends := l.ends(a, b)
	k := &Link{
		A: ends[0], B: ends[1], done: make(chan struct{}), begin: time.Now(), wake: -1, pool: &pool{size: e.MTU},
		due: never,
	}
	err := errors.Join(e.Forth.check(), e.Back.check())
	for i, end := range ends {
		if err == nil {
			err = end.Host.Do(func() (err error) { k.tuns[i], err = openTun(end.Interface); return err })
		}
		if err == nil {
			err = end.configure(e.MTU)
		}
	}
	if err == nil {
		k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		k.release()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrPermission) {
			l.tb.Skipf("emulated links are not available: %v", err)
		}
		l.tb.Fatalf("netlab: link from %s to %s: %v", a.Name, b.Name, err)
	}
	k.paths = [2]*path{newPath(e.Forth, e.Seed, k.pool), newPath(e.Back, e.Seed+1<<32, k.pool)}
	l.links = append(l.links, k)
	addProcessors(1)
	go k.run(e.Urgent)
	return k
}

// configure sets MTU and addresses of an interface and brings it up.
func (e End) configure(mtu int) error {
	// Without a link-local address the kernel sends no router solicitations, so the link carries only the
	// packets of the test. Without IPv6 the file does not exist.
	_ = e.Host.Sysctl("net.ipv6.conf."+e.Interface+".addr_gen_mode", "1")
	if err := e.SetMTU(mtu); err != nil {
		return err
	}
	return e.setAddresses(Wire{})
}

// Change sets the conditions of a direction for the next packets. Packets already sent are not affected.
func (k *Link) Change(d Direction, c Conditions) error {
	if err := c.check(); err != nil {
		return err
	}
	k.mu.Lock()
	k.paths[d].change(k.now(), c)
	k.mu.Unlock()
	k.wakeThread()
	return nil
}

// Conditions returns the current conditions of a direction.
func (k *Link) Conditions(d Direction) Conditions {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.paths[d].Conditions
}

// Counters returns the counters of a direction since the link was made.
func (k *Link) Counters(d Direction) Counters {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.paths[d].count
	c.Held = k.paths[d].held()
	return c
}

// Lateness returns the lateness since the link was made.
func (k *Link) Lateness() Lateness {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late
}

func (k *Link) now() time.Duration { return time.Since(k.begin) }

// wakeThread wakes the link's thread.
func (k *Link) wakeThread() {
	// An error means that the eventfd is already signalled.
	_, _ = unix.Write(k.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// batch bounds the packets read from one side before the other side is served.
const batch = 64

// run forwards packets until close. It locks its goroutine to a thread, whose priority may differ from the others'
// and which therefore ends with the goroutine.
func (k *Link) run(urgent bool) {
	defer close(k.done)
	runtime.LockOSThread()
	if urgent {
		UrgentLink.Set()
	}
	w := newPoller(k.tuns[0].fd, k.tuns[1].fd, k.wake)
	for {
		until, stopped := k.step()
		if stopped {
			return
		}
		if err := w.sleep(k.now, until); err != nil {
			k.mu.Lock()
			k.err, k.stopped = fmt.Errorf("ppoll: %w", err), true
			k.mu.Unlock()
			return
		}
	}
}

// step reads arrived packets, forwards due packets, and returns the time of the next step.
func (k *Link) step() (until time.Duration, stopped bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return 0, true
	}
	if late := k.now() - k.due; late > 0 {
		k.late.Worst = max(k.late.Worst, late)
		if late > time.Millisecond {
			k.late.Often++
		}
	}
	until = never
	for i, p := range k.paths {
		from, to := k.tuns[i], k.tuns[1-i]
		for range batch {
			b := k.pool.acquire()
			n, err := from.read(b.data)
			if err != nil {
				k.err = fmt.Errorf("read from %s: %w", [2]End{k.A, k.B}[i].Interface, err)
				k.stopped = true
				return 0, true
			}
			if n == 0 {
				k.pool.release(b)
				break
			}
			b.data = b.data[:n]
			if answer := p.accept(k.now(), b); answer != nil {
				_ = from.write(answer) // fails only if the interface is down
			}
		}
		for b := p.nextArrived(k.now()); b != nil; b = p.nextArrived(k.now()) {
			if to.write(b.data) != nil {
				p.drop(Refused, b)
				continue
			}
			p.count.Forwarded++
			k.pool.release(b)
		}
		until = min(until, p.deadline())
	}
	k.due = until
	return until, false
}

// addProcessors changes GOMAXPROCS: the goroutine of a link keeps one processor busy (see poller).
func addProcessors(more int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + more)
}

var procs sync.Mutex

// close ends the thread and removes the interfaces.
func (k *Link) close() error {
	k.mu.Lock()
	failed := k.err
	k.stopped = true
	k.mu.Unlock()
	k.wakeThread()
	<-k.done
	addProcessors(-1)
	k.release()
	return failed
}

func (k *Link) release() {
	for _, t := range k.tuns {
		if t.fd > 0 {
			t.close()
		}
	}
	if k.wake >= 0 {
		_ = unix.Close(k.wake)
	}
}
