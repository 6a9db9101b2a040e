package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// A probe of a link of the lab sends bursts of datagrams like a face's, each when the one
// before has long come.
const (
	probeBursts = 150
	probeBurst  = 6
	probeBytes  = 1400 // of a datagram
	probeAround = 28   // headers of IP and UDP
	probeGap    = 4 * time.Millisecond
	probeFlood  = 100 * time.Millisecond
	probeWait   = 2 * time.Second // for one, at most
)

// probed is what a link takes beyond what it emulates.
type probed struct {
	frame time.Duration // processor time of the emulation a frame that it is offered, at its limit: below it waits by looking at the clock
	late  time.Duration // that the last of a burst comes after it should, the receiver's waking included
}

// probe measures a link between two hosts of the lab: what the emulation takes is what this
// process does and its two ends' threads do not.
func probe(link *netlab.Link) (p probed, err error) {
	receiver, sender := -1, -1
	defer func() {
		for _, fd := range []int{receiver, sender} {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	}()
	at := &unix.SockaddrInet4{Addr: link.B.IPv4.As4()}
	if err = link.B.Host.Do(func() (err error) { receiver, err = bound(at); return err }); err != nil {
		return p, err
	}
	if err = link.A.Host.Do(func() (err error) { sender, err = bound(&unix.SockaddrInet4{Addr: link.A.IPv4.As4()}); return err }); err != nil {
		return p, err
	}
	where, err := unix.Getsockname(receiver)
	if err != nil {
		return p, err
	}
	late, err := bursts(link, sender, receiver, where)
	if err != nil {
		return p, err
	}
	should := homeLabDelay + time.Duration(probeBurst*(probeBytes+probeAround)*int(time.Second)/homeLabRate)
	p.late = max(0, time.Duration(stat.Mean(late, nil))-should)
	p.frame, err = flood(link, sender, where)
	return p, err
}

// bursts tells how long each took until its last datagram had come, in nanoseconds.
func bursts(link *netlab.Link, sender, receiver int, to unix.Sockaddr) (took []float64, err error) {
	base, heard := time.Now(), make(chan error, 1)
	go func() {
		heard <- link.B.Host.Do(func() error { // keeps the thread
			data := make([]byte, 2*probeBytes)
			for i := range probeBursts * probeBurst {
				if err := again(func() error { _, _, err := unix.Recvfrom(receiver, data, 0); return err }); err != nil {
					return fmt.Errorf("datagram %d of a probe of the lab's link: %w", i, err)
				}
				if i%probeBurst == probeBurst-1 {
					took = append(took, float64(time.Since(base)-time.Duration(binary.LittleEndian.Uint64(data))))
				}
			}
			return nil
		})
	}()
	data := make([]byte, probeBytes)
	for range probeBursts {
		begin := time.Now()
		binary.LittleEndian.PutUint64(data, uint64(begin.Sub(base)))
		for range probeBurst {
			if err = again(func() error { return unix.Sendto(sender, data, 0, to) }); err != nil {
				return nil, errors.Join(err, <-heard)
			}
		}
		time.Sleep(time.Until(begin.Add(probeGap))) // as peers do who wait for each other
	}
	return took, <-heard
}

// flood tells what a frame takes that is offered: what this process does beside the thread that sends.
func flood(link *netlab.Link, sender int, to unix.Sockaddr) (frame time.Duration, err error) {
	err = link.A.Host.Do(func() error {
		data, frames := make([]byte, probeBytes), 0
		all, own := used(unix.RUSAGE_SELF), used(unix.RUSAGE_THREAD)
		for begin := time.Now(); time.Since(begin) < probeFlood; frames++ {
			if err := again(func() error { return unix.Sendto(sender, data, 0, to) }); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
		own, all = used(unix.RUSAGE_THREAD)-own, used(unix.RUSAGE_SELF)-all
		frame = max(0, all-own) / time.Duration(frames)
		return nil
	})
	return frame, err
}

// again repeats a call that a signal interrupts.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// bound is a socket that waits no longer than probeWait.
func bound(at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	wait := unix.NsecToTimeval(int64(probeWait))
	if err := errors.Join(unix.Bind(fd, at), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ownTime is the processor time of this process and of the children that it has waited for.
func ownTime() time.Duration { return used(unix.RUSAGE_SELF) + used(unix.RUSAGE_CHILDREN) }

// used is the processor time of the process or the calling thread.
func used(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
