package ib

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// faultTest is three links that exchange frames while faults of all kinds occur.
type faultTest struct {
	*rig
	rng      *rand.Rand
	config   Config
	links    []*Link
	devices  []string
	attached []bool                  // the adapter was not removed
	addrs    [][]microproto.LinkAddr // [from][to]; 0: not connected
	number   uint32
	newest   map[string]uint32 // number of the newest frame, by receiver, mode and value
	received map[uint32]bool   // since the last repair
	opened   int
	faults   []string
}

// TestStorm injects faults of ports, adapters, peers and packets in any order. Frames arrive
// intact, in order and at most once. When the faults end, all connections come back in bounded
// time. After every round exactly the objects they need are open on the fabric.
func TestStorm(t *testing.T) {
	const rounds = 6
	for mode, c := range transferModes() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(mode, " ", seed), func(t *testing.T) {
				t.Parallel()
				c := c
				c.Peers, c.Timeout = 2, shortTimeout/4
				s := &faultTest{
					rig: newRig(t, software.Config{Seed: seed}), rng: rand.New(rand.NewPCG(seed, 4)), config: c,
					newest: map[string]uint32{}, received: map[uint32]bool{},
				}
				t.Cleanup(func() {
					for _, l := range s.links {
						require.NoError(t, l.Close())
					}
					if t.Failed() {
						t.Log(s.faults)
					}
				})
				for i := range 3 {
					s.links, s.devices, s.attached = append(s.links, nil), append(s.devices, ""), append(s.attached, true)
					s.addrs = append(s.addrs, make([]microproto.LinkAddr, 3))
					s.reopen(i)
				}
				s.repair()
				for range rounds {
					for range 1 + s.rng.IntN(4) {
						s.fault()
						for range s.rng.IntN(20) {
							s.send()
						}
						s.poll()
					}
					s.repair()
				}
			})
		}
	}
}

func (s *faultTest) note(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// reopen opens link i on a new adapter, without connections.
func (s *faultTest) reopen(i int) {
	s.opened++
	c := s.config
	c.Name, c.Device, c.Fabric = fmt.Sprint("peer", i), fmt.Sprint("adapter", s.opened), s.fabric
	require.NoError(s, s.fabric.Add(c.Device))
	l, err := Open(c)
	require.NoError(s, err)
	s.links[i], s.devices[i] = l, c.Device
	s.attached[i] = true
	clear(s.addrs[i])
}

// fault injects a fault.
func (s *faultTest) fault() {
	i := s.rng.IntN(3)
	j := (i + 1 + s.rng.IntN(2)) % 3
	switch k := s.rng.IntN(8); k {
	case 0, 1:
		s.note("port %d down", i)
		if s.attached[i] {
			require.NoError(s, s.fabric.SetPort(s.devices[i], false))
		}
	case 2:
		s.note("port %d up", i)
		if s.attached[i] {
			require.NoError(s, s.fabric.SetPort(s.devices[i], true))
		}
	case 3, 4:
		s.note("packet loss")
		s.fabric.software.SetRule(lossyRule(s.rng.Uint64()))
	case 5:
		s.note("restart %d", i)
		require.NoError(s, s.links[i].Close())
		s.reopen(i)
	case 6:
		s.note("forget %d %d", i, j)
		s.links[i].Forget(s.addrs[i][j])
		s.addrs[i][j] = 0
	case 7:
		s.note("remove %d", i)
		if s.attached[i] {
			require.NoError(s, s.fabric.Remove(s.devices[i]))
			s.attached[i] = false
		}
	}
}

// lossyRule returns a rule that loses packets, and delays packets that may be reordered: on one
// path InfiniBand keeps the order.
func lossyRule(seed uint64) software.Rule {
	r := rand.New(rand.NewPCG(seed, 0xfa7e))
	return func(p software.Packet) software.Fault {
		f := software.Fault{Drop: r.Float64() < 0.1}
		if late, by := r.Float64() < 0.1, r.Float64(); late && p.Transport != verbs.UC {
			f.Delay = time.Duration(by * float64(time.Millisecond))
		}
		return f
	}
}

// send sends a frame of any kind to any peer. It may be lost.
func (s *faultTest) send() uint32 {
	i := s.rng.IntN(3)
	j := (i + 1 + s.rng.IntN(2)) % 3
	return s.sendFrom(i, j, []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous}[s.rng.IntN(2)])
}

func (s *faultTest) sendFrom(i, j int, m microproto.Mode) uint32 {
	if s.addrs[i][j] == 0 {
		return 0
	}
	s.number++
	l := s.links[i]
	value := uint64(i)
	if m == microproto.ModeAsynchronous {
		value = uint64(3 + i + 3*s.rng.IntN(4))
	}
	f := message(l, s.addrs[i][j], m, value, s.number, s.rng.IntN(6000), s.rng.IntN(3) == 0)
	n, err := l.Send([]microproto.Frame{f})
	require.NoError(s, err)
	if n == 0 {
		f.Release()
	}
	return s.number
}

// poll receives what has arrived.
func (s *faultTest) poll() {
	batch := make([]microproto.Frame, 16)
	for i, l := range s.links {
		n, err := l.TryRecv(batch)
		require.NoError(s, err)
		for _, f := range batch[:n] {
			s.take(i, f)
			f.Release()
		}
	}
}

func (s *faultTest) take(i int, f microproto.Frame) {
	number, mode := binary.BigEndian.Uint32(f.Data), binary.BigEndian.Uint32(f.Data[4:])
	value := binary.BigEndian.Uint64(f.Data[8:])
	for k := 16; k < len(f.Data); k++ {
		if f.Data[k] != byte(number)+byte(k*7) {
			require.Fail(s, "torn", "byte %d of %d of frame %d", k, len(f.Data), number)
		}
	}
	from := fmt.Sprint(i, " ", mode, " ", value)
	require.Greater(s, number, s.newest[from], "frames from one end come in order, once: %s", from)
	s.newest[from] = number
	s.received[number] = true
}

// repair ends all faults, waits until frames of both modes pass between all links, and counts the
// open objects.
func (s *faultTest) repair() {
	s.note("heal")
	s.fabric.software.SetRule(nil)
	for i := range s.links {
		if !s.attached[i] {
			require.NoError(s, s.links[i].Close())
			s.reopen(i)
		}
		require.NoError(s, s.fabric.SetPort(s.devices[i], true))
	}
	clear(s.received)
	missing := []int{}
	for path := range 9 {
		if path/3 != path%3 {
			missing = append(missing, path)
		}
	}
	polls := 50
	await.Until(s, func() bool {
		missing = slices.DeleteFunc(missing, func(path int) bool { return s.exchangeFrames(path/3, path%3, polls) })
		polls *= 2 // a busy machine needs more time
		return len(missing) == 0
	}, "the connections to come back: %v", s.faults)
	windows := int64(0)
	if s.config.WindowSlots > 0 {
		windows = 2
	}
	live := s.fabric.software.Live()
	live[software.PinnedBytes] = 0
	want := software.Counts{
		software.Devices: 3, software.Domains: 3, software.Regions: 3 * (1 + windows), software.Channels: 3,
		software.Queues: 6, software.Pairs: 12,
	}
	require.Equal(s, want, live, "%v", s.faults)
}

// exchangeFrames exchanges offers of two ends, as the control channel would, and reports whether
// frames of both modes have passed after so many polls.
func (s *faultTest) exchangeFrames(i, j, polls int) bool {
	for _, x := range [][2]int{{i, j}, {j, i}, {i, j}} { // a refused offer may be answered the third time
		from, to := s.links[x[0]], s.links[x[1]]
		offer, err := from.Offer(to.config.Name)
		if err == nil {
			var addr microproto.LinkAddr
			if addr, err = to.Accept(offer); err == nil {
				s.addrs[x[1]][x[0]] = addr
			}
		}
		require.True(s, err == nil || errors.Is(err, ErrPort) || errors.Is(err, ErrDown), "%v", err)
	}
	if s.addrs[i][j] == 0 {
		return false
	}
	sync := s.sendFrom(i, j, microproto.ModeSynchronous)
	async := s.sendFrom(i, j, microproto.ModeAsynchronous)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for range polls {
		if s.poll(); s.received[sync] && s.received[async] {
			return true
		}
		<-tick.C
	}
	return false
}
