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
	over  bool
	err   error
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
	k := &Link{A: ends[0], B: ends[1], done: make(chan struct{}), begin: time.Now(), wake: -1, pool: &pool{size: e.MTU}}
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

// run passes packets on until close. It has a thread for itself, whose sleep ends on
// the microsecond and which goes before others: what the link adds must not depend on
// how busy its users keep the machine. The thread ends with it.
func (k *Link) run() {
	defer close(k.done)
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	fds := []unix.PollFd{
		{Fd: int32(k.tuns[0].fd), Events: unix.POLLIN},
		{Fd: int32(k.tuns[1].fd), Events: unix.POLLIN},
		{Fd: int32(k.wake), Events: unix.POLLIN},
	}
	for {
		until, over := k.turn()
		if over {
			return
		}
		var timeout *unix.Timespec
		if until != never {
			t := unix.NsecToTimespec(max(0, (until - k.now()).Nanoseconds()))
			timeout = &t
		}
		if _, err := unix.Ppoll(fds, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
			k.fail(fmt.Errorf("ppoll: %w", err))
			return
		}
		if fds[2].Revents != 0 {
			var count [8]byte
			_, _ = unix.Read(k.wake, count[:])
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
	return until, false
}

func (k *Link) end(i int) End { return [2]End{k.A, k.B}[i] }

func (k *Link) fail(err error) {
	k.mu.Lock()
	k.err, k.over = err, true
	k.mu.Unlock()
}

// close ends the thread and takes the interfaces away.
func (k *Link) close() error {
	k.mu.Lock()
	failed := k.err
	k.over = true
	k.mu.Unlock()
	k.ring()
	<-k.done
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
