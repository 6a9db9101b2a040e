//go:build linux

package ether_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/microproto"
)

// on opens a link on a host. joinAcross makes two links on different hosts accept each other.
func on(t *testing.T, h *netlab.Host, c ether.Config) (l *ether.Link) {
	t.Helper()
	require.NoError(t, h.Do(func() error { l = open(t, c); return nil }))
	return l
}

func joinAcross(t *testing.T, hostA, hostB *netlab.Host, a, b *ether.Link) (toB, toA microproto.LinkAddr) {
	t.Helper()
	var offerA, offerB []byte
	require.NoError(t, hostA.Do(func() (err error) { offerA, err = a.Offer("b"); return err }))
	require.NoError(t, hostB.Do(func() (err error) { offerB, err = b.Offer("a"); return err }))
	require.NoError(t, hostA.Do(func() (err error) { toB, err = a.Accept(offerB); return err }))
	require.NoError(t, hostB.Do(func() (err error) { toA, err = b.Accept(offerA); return err }))
	return toB, toA
}

// run sends frames of one size and checks that all arrive intact.
func run(t *testing.T, a, b *ether.Link, to microproto.LinkAddr, count, size int) {
	t.Helper()
	in := receive(b, 2*count)
	// Only a few frames are queued before the neighbour's hardware address is known.
	first := a.Acquire(1)
	first.Peer = to
	send(t, a, []microproto.Frame{first})
	require.Len(t, in.next(t), 1)
	most := count
	if size > 1500 {
		most = 15 // on a busy machine the fragments of more fill the kernel's backlog of 1000 packets
	}
	seen := map[uint32]bool{}
	for begin := 0; begin < count; begin += most {
		frames := make([]microproto.Frame, min(most, count-begin))
		for i := range frames {
			frames[i] = a.Acquire(size)
			frames[i].Peer = to
			fill(frames[i], uint32(begin+i))
		}
		send(t, a, frames)
		for range frames {
			got := in.next(t)
			require.Len(t, got, size)
			number := binary.BigEndian.Uint32(got)
			require.False(t, seen[number], "frame %d twice", number)
			want := microproto.Frame{Data: make([]byte, size)}
			fill(want, number)
			require.Equal(t, want.Data, got)
			seen[number] = true
		}
	}
}

func TestAcrossAWire(t *testing.T) {
	t.Parallel() // it mostly waits
	lab := netlab.New(t)
	hostA, hostB := lab.Host("a"), lab.Host("b")
	endA, endB := lab.Join(hostA, hostB, netlab.Wire{MTU: 1500})
	for name, c := range map[string]struct {
		a, b  netip.Addr
		frame int
	}{
		"IPv4": {endA.IPv4, endB.IPv4, 1472},
		"IPv6": {endA.IPv6, endB.IPv6, 1452},
		// Both listen on all addresses: neither loopback nor too large frames are chosen.
		"any":     {netip.IPv6Unspecified(), netip.IPv6Unspecified(), 1452},
		"any IP4": {netip.IPv4Unspecified(), netip.IPv4Unspecified(), 1472},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := on(t, hostA, ether.Config{Listen: c.a.String()}), on(t, hostB, ether.Config{Listen: c.b.String()})
			toB, _ := joinAcross(t, hostA, hostB, a, b)
			require.Equal(t, c.frame, a.Caps(microproto.ModeSynchronous).MTU)
			run(t, a, b, toB, 200, c.frame)
			require.NotZero(t, a.Stats().SuperSent, "no segmentation offload over veth")
		})
	}
}

// Segmentation offload refuses a segment larger than the interface's MTU. The link disables it for
// that peer, and the kernel fragments.
func TestSegmentationOffloadIsDisabledWhenRefused(t *testing.T) {
	t.Parallel() // it mostly waits
	lab := netlab.New(t)
	hostA, hostB := lab.Host("a"), lab.Host("b")
	endA, endB := lab.Join(hostA, hostB, netlab.Wire{MTU: 1500})
	for _, pair := range [][2]netip.Addr{{endA.IPv4, endB.IPv4}, {endA.IPv6, endB.IPv6}} {
		c := ether.Config{Listen: pair[0].String(), MTU: 9000}
		a := on(t, hostA, c)
		c.Listen = pair[1].String()
		b := on(t, hostB, c)
		toB, _ := joinAcross(t, hostA, hostB, a, b)
		run(t, a, b, toB, 60, a.Caps(microproto.ModeSynchronous).MTU)
		s := a.Stats()
		require.Zero(t, s.SuperSent)
		require.Zero(t, s.SendLost, "%v", s.LastSendError)
		require.EqualValues(t, 61, s.FramesSent)
	}
}

// The MTU of the route to the peer may be smaller than that of the local interface.
func TestRouteLowersTheFrame(t *testing.T) {
	lab := netlab.New(t)
	hostA, hostB := lab.Host("a"), lab.Host("b")
	lab.Join(hostA, lab.Host("c"), netlab.Wire{MTU: 9000})
	lab.Join(hostA, hostB, netlab.Wire{MTU: 1400})
	a, b := on(t, hostA, ether.Config{Listen: "0.0.0.0"}), on(t, hostB, ether.Config{Listen: "0.0.0.0"})
	joinAcross(t, hostA, hostB, a, b)
	require.Equal(t, 1400-28, a.Caps(microproto.ModeAsynchronous).MTU)
	fixed := on(t, hostA, ether.Config{Listen: "0.0.0.0", MTU: 9000})
	joinAcross(t, hostA, hostB, fixed, b)
	require.Equal(t, 9000-28, fixed.Caps(microproto.ModeAsynchronous).MTU, "an MTU that was asked for stays")
}

// Routers must not fragment frames: a receiver could join the fragments of two. This holds for single frames and for
// those that the kernel segments.
func TestFramesAreNotFragmented(t *testing.T) {
	lab := netlab.New(t)
	link := lab.Emulate(lab.Host("a"), lab.Host("b"), netlab.Emulation{Forth: netlab.Conditions{MTU: 1300}})
	for i, plain := range []bool{false, true} {
		c := ether.Config{Listen: link.A.IPv4.String(), DisableBatch: plain}
		a := on(t, link.A.Host, c)
		c.Listen = link.B.IPv4.String()
		b := on(t, link.B.Host, c)
		toB, _ := joinAcross(t, link.A.Host, link.B.Host, a, b)
		for _, count := range []int{1, 40} {
			frames := make([]microproto.Frame, count)
			for i := range frames {
				frames[i] = a.Acquire(1472)
				frames[i].Peer = toB
			}
			send(t, a, frames)
		}
		await.Until(t, func() bool {
			return link.Counters(netlab.Forth).Dropped[netlab.TooLarge] == uint64(41*(i+1))
		}, "the router to drop every long frame")
		run(t, a, b, toB, 40, 1272) // ICMP messages have no effect on shorter frames
		require.Zero(t, a.Stats().SendLost, "%v", a.Stats().LastSendError)
	}
	require.Zero(t, link.Counters(netlab.Forth).Fragments)
}

// On a slow path the send queue fills. Send takes a prefix, Writable reports room, and no frame is
// lost.
func TestFullLink(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, plain := range []bool{false, true} {
		lab := netlab.New(t)
		hostA, hostB := lab.Host("a"), lab.Host("b")
		endA, endB := lab.Join(hostA, hostB, netlab.Wire{Rate: 2_000_000, Queue: 1 << 20})
		a := on(t, hostA, ether.Config{Listen: endA.IPv4.String(), DisableBatch: plain})
		b := on(t, hostB, ether.Config{Listen: endB.IPv4.String()})
		toB, _ := joinAcross(t, hostA, hostB, a, b)
		run(t, a, b, toB, 400, 1472) // takes 0.3 s at that rate
		require.NotZero(t, a.Stats().SendFull, "the socket never filled")
		require.Zero(t, a.Stats().SendLost)
		require.Less(t, a.Stats().QueueOut, 200_000, "the queue holds milliseconds of a slow path, not more")
	}
}

func TestOtherHostsLoopbackIsRefused(t *testing.T) {
	lab := netlab.New(t)
	hostA, hostB := lab.Host("a"), lab.Host("b")
	lab.Join(hostA, hostB, netlab.Wire{})
	a, b := on(t, hostA, ether.Config{Listen: "127.0.0.1"}), on(t, hostB, ether.Config{Listen: "127.0.0.1"})
	var offer []byte
	require.NoError(t, hostB.Do(func() (err error) { offer, err = b.Offer("a"); return err }))
	require.NoError(t, hostA.Do(func() error {
		_, err := a.Accept(offer)
		require.ErrorContains(t, err, "a loopback address of another host")
		return nil
	}))
}
