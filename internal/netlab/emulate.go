//go:build linux

package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Direction of a link.
type Direction int

// Forth is from the first host to the second, Back the other way.
const (
	Forth Direction = iota
	Back
)

// Emulation says what an emulated link is like.
type Emulation struct {
	MTU  int // of the interfaces, bytes; 0: 1500
	Seed uint64
	// Forth and Back are the conditions of the two directions; Both, if it is set, is
	// taken for either.
	Forth, Back Conditions
	Both        *Conditions
}

// Link joins two hosts by TUN interfaces and a thread of this process that passes the
// packets on as its conditions say. Over it go some hundred Mbit/s; it adds some
// microseconds. Its methods may be called from any goroutine.
type Link struct {
	A, B End

	done chan struct{}
	wake int // an eventfd
	tuns [2]tun

	mu    sync.Mutex
	begin time.Time
	paths [2]*path
	pool  *pool
	due   time.Duration // when the next packet has to go
	late  Lateness
	over  bool
	err   error
}

// Lateness tells how punctual a link's thread was: measurements are as good as that.
type Lateness struct {
	Worst time.Duration // that a packet was late by
	Often int           // times that one was late by more than a millisecond
}

// Emulate joins two hosts by an emulated link, or skips the test where there are no
// TUN devices. The addresses are those that Join would give.
func (l *Lab) Emulate(a, b *Host, e Emulation) *Link {
	l.tb.Helper()
	if e.Both != nil {
		e.Forth, e.Back = *e.Both, *e.Both
	}
	if e.MTU == 0 {
		e.MTU = 1500
	}
	ends := l.ends(a, b)
	k := &Link{A: ends[0], B: ends[1], done: make(chan struct{}), begin: time.Now(), wake: -1, pool: &pool{size: e.MTU}, due: never}
	err := errors.Join(e.Forth.check(), e.Back.check())
	for i, end := range ends {
		if err == nil {
			err = end.Host.Do(func() (err error) { k.tuns[i], err = openTun(end.Interface); return err })
		}
		if err == nil {
			err = end.plug(e.MTU)
		}
	}
	if err == nil {
		k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		k.shut()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrPermission) {
			l.tb.Skipf("no emulated links here: %v", err)
		}
		l.tb.Fatalf("netlab: link from %s to %s: %v", a.Name, b.Name, err)
	}
	k.paths = [2]*path{newPath(e.Forth, e.Seed, k.pool), newPath(e.Back, e.Seed+1<<32, k.pool)}
	l.links = append(l.links, k)
	processors(1)
	go k.run()
	return k
}

// plug sets an interface up.
func (e End) plug(mtu int) error {
	// Nothing but what the test sends shall go over the link: no address of its own,
	// hence no router solicitation. There is no such file where IPv6 is missing.
	_ = e.Host.Sysctl("net.ipv6.conf."+e.Interface+".addr_gen_mode", "1")
	if err := e.SetMTU(mtu); err != nil {
		return err
	}
	return e.dress(Wire{})
}

// Change sets the conditions of a direction. They hold from the next packet on; what is
// under way goes its way.
func (k *Link) Change(d Direction, c Conditions) error {
	if err := c.check(); err != nil {
		return err
	}
	k.mu.Lock()
	k.paths[d].change(k.now(), c)
	k.mu.Unlock()
	k.ring()
	return nil
}

// Conditions are those of a direction now.
func (k *Link) Conditions(d Direction) Conditions {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.paths[d].Conditions
}

// Counters are those of a direction since the beginning.
func (k *Link) Counters(d Direction) Counters {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.paths[d].count
	c.Held = k.paths[d].held()
	return c
}

// Lateness is that since the beginning.
func (k *Link) Lateness() Lateness {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late
}

func (k *Link) now() time.Duration { return time.Since(k.begin) }

// ring wakes the link's thread.
func (k *Link) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	// It fails when the thread has been rung for and not come yet, which is as good.
	_, _ = unix.Write(k.wake, one[:])
}

// batch is how many packets are taken from one side before the other has its turn.
const batch = 64

// run passes packets on until close. It has a thread for itself that is in a hurry;
// the thread ends with it.
func (k *Link) run() {
	defer close(k.done)
	runtime.LockOSThread()
	UrgentLink.Set()
	w := newWatch(k.tuns[0].fd, k.tuns[1].fd, k.wake)
	for {
		until, over := k.turn()
		if over {
			return
		}
		if err := w.sleep(k.now, until); err != nil {
			k.fail(fmt.Errorf("ppoll: %w", err))
			return
		}
	}
}

// turn takes in what has come, passes on what is due, and says when to come again.
func (k *Link) turn() (until time.Duration, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
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
				k.err, k.over = fmt.Errorf("read from %s: %w", k.end(i).Interface, err), true
				return 0, true
			}
			if n == 0 {
				k.pool.release(b)
				break
			}
			b.data = b.data[:n]
			if answer := p.take(k.now(), b); answer != nil {
				_ = from.write(answer) // a host that is down need not know
			}
		}
		for b := p.exit(k.now()); b != nil; b = p.exit(k.now()) {
			if to.write(b.data) != nil {
				p.drop(Refused, b)
				continue
			}
			p.count.Forwarded++
			p.count.Bytes += uint64(len(b.data))
			k.pool.release(b)
		}
		until = min(until, p.deadline())
	}
	k.due = until
	return until, false
}

func (k *Link) end(i int) End { return [2]End{k.A, k.B}[i] }

func (k *Link) fail(err error) {
	k.mu.Lock()
	k.err, k.over = err, true
	k.mu.Unlock()
}

// processors changes how many goroutines may run at once: a link's keeps one busy, see
// watch.
func processors(more int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + more)
}

var procs sync.Mutex

// close ends the thread and takes the interfaces away.
func (k *Link) close() error {
	k.mu.Lock()
	failed := k.err
	k.over = true
	k.mu.Unlock()
	k.ring()
	<-k.done
	processors(-1)
	k.shut()
	return failed
}

func (k *Link) shut() {
	for _, t := range k.tuns {
		if t.fd > 0 {
			t.close()
		}
	}
	if k.wake >= 0 {
		_ = unix.Close(k.wake)
	}
}
