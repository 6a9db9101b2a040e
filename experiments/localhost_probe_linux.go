package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
)

// A probe of a link of the laboratory sends bursts of datagrams, as many as a face has, so far apart
// that each burst has arrived before the next.
const (
	probeBursts = 150
	probeBurst  = 6
	probeBytes  = 1400 // of a datagram
	probeGap    = 4 * time.Millisecond
	probeFlood  = 100 * time.Millisecond
	probeWait   = 2 * time.Second // for a datagram
)

// linkCost is the cost of an emulated link beyond its rate and delay.
type linkCost struct {
	// frame is the emulation's processor time per frame when it is overloaded. Otherwise it also polls
	// the clock.
	frame time.Duration
	late  time.Duration // of the last datagram of a burst, the wake-up of the receiver included
}

// probe measures an emulated link. The emulation runs in this process, on a separate thread.
func probe(link *netlab.Link) (p linkCost, err error) {
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
	from := &unix.SockaddrInet4{Addr: link.A.IPv4.As4()}
	if err = link.A.Host.Do(func() (err error) { sender, err = bound(from); return err }); err != nil {
		return p, err
	}
	to, err := unix.Getsockname(receiver)
	if err != nil {
		return p, err
	}
	late, err := bursts(link, sender, receiver, to)
	if err != nil {
		return p, err
	}
	expected := labDelay + time.Duration(probeBurst*(probeBytes+linkFrame)*int(time.Second)/labRate)
	p.late = max(0, time.Duration(stat.Mean(late, nil))-expected)
	p.frame, err = flood(link, sender, to)
	return p, err
}

// bursts returns the times of bursts until the last datagram has arrived, in nanoseconds.
func bursts(link *netlab.Link, sender, receiver int, to unix.Sockaddr) (took []float64, err error) {
	base, received := time.Now(), make(chan error, 1)
	go func() {
		received <- link.B.Host.Do(func() error { // on one thread
			data := make([]byte, 2*probeBytes)
			for i := range probeBursts * probeBurst {
				if err := retry(func() error { _, _, err := unix.Recvfrom(receiver, data, 0); return err }); err != nil {
					return fmt.Errorf("datagram %d of a probe of the link: %w", i, err)
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
			if err = retry(func() error { return unix.Sendto(sender, data, 0, to) }); err != nil {
				return nil, errors.Join(err, <-received)
			}
		}
		time.Sleep(time.Until(begin.Add(probeGap))) // peers that wait for each other are idle as long
	}
	return took, <-received
}

// flood returns the processor time of a frame beside that of the thread that sends it.
func flood(link *netlab.Link, sender int, to unix.Sockaddr) (frame time.Duration, err error) {
	err = link.A.Host.Do(func() error {
		data, frames := make([]byte, probeBytes), 0
		before := emulationTime()
		for begin := time.Now(); time.Since(begin) < probeFlood; frames++ {
			err := retry(func() error { return unix.Sendto(sender, data, 0, to) })
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
		frame = max(0, emulationTime()-before) / time.Duration(frames)
		return nil
	})
	return frame, err
}

// retry repeats a call that a signal interrupts.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// bound returns a bound socket that waits no longer than probeWait.
func bound(at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	wait := unix.NsecToTimeval(int64(probeWait))
	err = errors.Join(unix.Bind(fd, at), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// emulationTime returns the processor time of this process beside that of the calling thread.
func emulationTime() time.Duration {
	return measure.ProcessorTime(measure.ThisProcess) - measure.ProcessorTime(measure.ThisThread)
}
