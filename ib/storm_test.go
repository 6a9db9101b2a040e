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

// storm is three links that exchange frames while everything goes wrong that can.
type storm struct {
	*rig
	rng     *rand.Rand
	config  Config
	links   []*Link
	devices []string
	sound   []bool                  // the adapter has not been removed
	to      [][]microproto.LinkAddr // [from][to]; 0: not joined
	number  uint32
	newest  map[string]uint32 // number of the newest frame, by receiver, mode and value
	came    map[uint32]bool   // since the last heal
	opened  int
	faults  []string
}

// TestStorm: ports, adapters, peers and packets fail in any order. What arrives is whole
// and in order, once; when the weather is good again all connections come back in
// bounded time, and after every round exactly what they need is open on the fabric.
func TestStorm(t *testing.T) {
	const rounds = 6
	for way, c := range ways() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(way, " ", seed), func(t *testing.T) {
				t.Parallel()
				c := c
				c.Peers, c.Timeout = 2, soon/4
				s := &storm{
					rig: newRig(t, software.Config{Seed: seed}), rng: rand.New(rand.NewPCG(seed, 4)), config: c,
					newest: map[string]uint32{}, came: map[uint32]bool{},
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
					s.links, s.devices, s.sound = append(s.links, nil), append(s.devices, ""), append(s.sound, true)
					s.to = append(s.to, make([]microproto.LinkAddr, 3))
					s.reopen(i)
				}
				s.heal()
				for range rounds {
					for range 1 + s.rng.IntN(4) {
						s.fault()
						for range s.rng.IntN(20) {
							s.send()
						}
						s.poll()
					}
					s.heal()
				}
			})
		}
	}
}

func (s *storm) note(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// reopen opens link i on a new adapter: nobody knows it.
func (s *storm) reopen(i int) {
	s.opened++
	c := s.config
	c.Name, c.Device, c.Fabric = fmt.Sprint("peer", i), fmt.Sprint("adapter", s.opened), s.fabric
	require.NoError(s, s.fabric.Add(c.Device))
	l, err := Open(c)
	require.NoError(s, err)
	s.links[i], s.devices[i], s.sound[i] = l, c.Device, true
	clear(s.to[i])
}

// fault makes something go wrong.
func (s *storm) fault() {
	i := s.rng.IntN(3)
	j := (i + 1 + s.rng.IntN(2)) % 3
	switch k := s.rng.IntN(8); k {
	case 0, 1:
		s.note("pull %d", i)
		if s.sound[i] {
			require.NoError(s, s.fabric.SetPort(s.devices[i], false))
		}
	case 2:
		s.note("plug %d", i)
		if s.sound[i] {
			require.NoError(s, s.fabric.SetPort(s.devices[i], true))
		}
	case 3, 4:
		s.note("weather")
		s.fabric.software.SetRule(weather(s.rng.Uint64()))
	case 5:
		s.note("kill %d", i)
		require.NoError(s, s.links[i].Close())
		s.reopen(i)
	case 6:
		s.note("forget %d %d", i, j)
		s.links[i].Forget(s.to[i][j])
		s.to[i][j] = 0
	case 7:
		s.note("remove %d", i)
		if s.sound[i] {
			require.NoError(s, s.fabric.Remove(s.devices[i]))
			s.sound[i] = false
		}
	}
}

// weather loses packets, and delays those that will be put in order again: InfiniBand
// keeps the order of packets on a path.
func weather(seed uint64) software.Rule {
	chances := software.FaultRates{Seed: seed, DropRate: 0.1, DelayRate: 0.1, MaxDelay: time.Millisecond}.Rule()
	return func(p software.Packet) software.Fault {
		f := chances(p)
		if p.Transport == verbs.UC {
			f.Delay = 0
		}
		return f
	}
}

// send sends a frame of any kind to anybody; it need not arrive.
func (s *storm) send() uint32 {
	i := s.rng.IntN(3)
	j := (i + 1 + s.rng.IntN(2)) % 3
	return s.sendFrom(i, j, []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous}[s.rng.IntN(2)])
}

func (s *storm) sendFrom(i, j int, m microproto.Mode) uint32 {
	if s.to[i][j] == 0 {
		return 0
	}
	s.number++
	l := s.links[i]
	value := uint64(i)
	if m == microproto.ModeAsynchronous {
		value = uint64(3 + i + 3*s.rng.IntN(4))
	}
	f := message(l, s.to[i][j], m, value, s.number, s.rng.IntN(6000), s.rng.IntN(3) == 0)
	n, err := l.Send([]microproto.Frame{f})
	require.NoError(s, err)
	if n == 0 {
		f.Release()
	}
	return s.number
}

// poll takes what has come.
func (s *storm) poll() {
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

func (s *storm) take(i int, f microproto.Frame) {
	number, mode, value := binary.BigEndian.Uint32(f.Data), binary.BigEndian.Uint32(f.Data[4:]), binary.BigEndian.Uint64(f.Data[8:])
	for k := 16; k < len(f.Data); k++ {
		if f.Data[k] != byte(number)+byte(k*7) {
			require.Fail(s, "torn", "byte %d of %d of frame %d", k, len(f.Data), number)
		}
	}
	from := fmt.Sprint(i, " ", mode, " ", value)
	require.Greater(s, number, s.newest[from], "frames from one end come in order, once: %s", from)
	s.newest[from] = number
	s.came[number] = true
}

// heal makes everything good, waits until frames of both modes pass between all, and
// counts what is open.
func (s *storm) heal() {
	s.note("heal")
	s.fabric.software.SetRule(nil)
	for i := range s.links {
		if !s.sound[i] {
			require.NoError(s, s.links[i].Close())
			s.reopen(i)
		}
		require.NoError(s, s.fabric.SetPort(s.devices[i], true))
	}
	clear(s.came)
	missing := []int{}
	for way := range 9 {
		if way/3 != way%3 {
			missing = append(missing, way)
		}
	}
	looks := 50
	await.Until(s, func() bool {
		missing = slices.DeleteFunc(missing, func(way int) bool { return s.passes(way/3, way%3, looks) })
		looks *= 2 // a busy machine needs more time
		return len(missing) == 0
	}, "the connections to come back: %v", s.faults)
	windows := int64(0)
	if s.config.WindowSlots > 0 {
		windows = 2
	}
	live := s.fabric.software.Live()
	live.PinnedBytes = 0
	require.Equal(s, software.Counts{Devices: 3, Domains: 3, Regions: 3 * (1 + windows), Channels: 3, Queues: 6, Pairs: 12}, live, "%v", s.faults)
}

// passes introduces two ends to each other, as the control channel would, and tells
// whether frames of both modes have passed after so many looks.
func (s *storm) passes(i, j, looks int) bool {
	for _, x := range [][2]int{{i, j}, {j, i}, {i, j}} { // the third: who was refused may have an answer now
		from, to := s.links[x[0]], s.links[x[1]]
		offer, err := from.Offer(to.config.Name)
		if err == nil {
			var addr microproto.LinkAddr
			if addr, err = to.Accept(offer); err == nil {
				s.to[x[1]][x[0]] = addr
			}
		}
		require.True(s, err == nil || errors.Is(err, ErrPort) || errors.Is(err, ErrDown), "%v", err)
	}
	if s.to[i][j] == 0 {
		return false
	}
	sync := s.sendFrom(i, j, microproto.ModeSynchronous)
	async := s.sendFrom(i, j, microproto.ModeAsynchronous)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for range looks {
		if s.poll(); s.came[sync] && s.came[async] {
			return true
		}
		<-tick.C
	}
	return false
}
