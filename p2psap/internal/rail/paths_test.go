package rail

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// adapter is a Link whose connections are numbered by offers.
type adapter struct {
	offers             byte
	accepted, released []microproto.LinkAddr
}

func (l *adapter) Acquire(int) microproto.Frame         { return microproto.Frame{} }
func (l *adapter) Caps(microproto.Mode) microproto.Caps { return microproto.Caps{MTU: 1500} }
func (l *adapter) Forget(addr microproto.LinkAddr)      { l.released = append(l.released, addr) }
func (l *adapter) Accept(b []byte) (microproto.LinkAddr, error) {
	l.accepted = append(l.accepted, microproto.LinkAddr(b[0]))
	return microproto.LinkAddr(b[0]), nil
}
func (l *adapter) Offer(string) ([]byte, error) {
	l.offers++
	return []byte{l.offers}, nil
}

// side is the Host of one end. Messages to the other end wait in sent.
type side struct {
	Paths
	link   adapter
	rail   Rail
	sent   []control.PathState
	number uint64
	ups    int
	downs  int
	steady int

	baseDowns, baseUps int
}

func newSides() (sides [2]*side, rails [2][]*Rail) {
	for i := range sides {
		s := &side{}
		s.Config = Config{Node: string(rune('a' + i)), Peer: string(rune('b' - i)), Dwell: time.Second, Host: s}
		s.rail = Rail{Number: 1, Network: path.InfiniBand, Link: &s.link}
		s.Config.Base = &Rail{Network: path.Ethernet, Link: &adapter{}}
		sides[i], rails[i] = s, []*Rail{s.Config.Base, &s.rail}
	}
	return sides, rails
}

func (s *side) Connected() bool                  { return true }
func (s *side) Acknowledged(uint64) bool         { return len(s.sent) == 0 }
func (s *side) PathUp(microproto.Instant, *Path) { s.ups++ }
func (s *side) PathSteady(microproto.Instant)    { s.steady++ }
func (s *side) BaseDown(microproto.Instant)      { s.baseDowns++ }
func (s *side) BaseUp(microproto.Instant)        { s.baseUps++ }
func (s *side) PathDown(_ microproto.Instant, _ *Path, wasUp bool) {
	if wasUp {
		s.downs++
	}
}
func (s *side) Announce(m *control.PathState) uint64 {
	s.sent = append(s.sent, *m)
	s.number++
	return s.number
}

// deliver passes one message to the other end.
func (s *side) deliver(t *testing.T, now microproto.Instant, to *side) {
	m := s.sent[0]
	s.sent = s.sent[1:]
	require.NoError(t, to.Receive(now, &m))
}

// run passes time without faults.
func run(t *testing.T, now microproto.Instant, sides [2]*side) microproto.Instant {
	t.Helper()
	for range 2000 {
		for i, s := range sides {
			for len(s.sent) > 0 {
				s.deliver(t, now, sides[1-i])
			}
			s.Advance(now)
		}
		now = now.Add(50 * time.Millisecond)
	}
	return now
}

// Whatever fails, and whenever messages arrive: in the end the path is up at both ends in one round, each
// connection that was given up was released, and sessions are told once it has been up for a while.
func TestPathComesUpAgain(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		sides, rails := newSides()
		now := microproto.Instant(1)
		networks := []path.Network{path.InfiniBand}
		for i, s := range sides {
			s.Begin(now, rails[i], networks, networks)
		}
		fault := errors.New("a cable was pulled")
		for range 200 {
			i := r.IntN(2)
			s, other := sides[i], sides[1-i]
			p := s.List[0]
			switch k := r.IntN(20); {
			case k == 0:
				s.rail.Err = fault
				s.RailDown(now, &s.rail, fault)
			case k == 1:
				s.rail.Err = nil
				s.RailUp(now, &s.rail)
			case k == 2 && p.Addr != 0:
				s.ConnectionDown(now, &s.rail, p.Addr, fault)
			case k < 12 && len(s.sent) > 0:
				s.deliver(t, now, other)
			default:
				now = now.Add(time.Duration(r.IntN(int(200 * time.Millisecond))))
				s.Advance(now)
			}
		}
		for _, s := range sides {
			s.rail.Err = nil
			s.RailUp(now, &s.rail)
		}
		now = run(t, now, sides)
		for _, s := range sides {
			s.ConnectionDown(now, &s.rail, s.List[0].Addr, fault) // it comes back by itself
		}
		run(t, now, sides)
		a, b := sides[0].List[0], sides[1].List[0]
		require.True(t, a.Up() && b.Up(), "seed %d: %v; %v", seed, a, b)
		require.Equal(t, a.Round, b.Round, "seed %d", seed)
		for _, s := range sides {
			require.Equal(t, s.ups, s.downs+1, "seed %d", seed)
			require.Positive(t, s.steady, "seed %d", seed)
			released := append(s.link.released, s.List[0].Addr)
			require.Equal(t, s.link.accepted, released, "seed %d", seed)
			require.Same(t, s.List[0], s.Best(microproto.ModeSynchronous, true))
		}
	}
}

// later is an adapter that connects after Accept.
type later struct{ adapter }

func (l *later) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: 1500, ConnectsLater: true}
}

// A path over a link that connects after Accept is up when both ends have met. If they do not meet, it is known to be
// down, and the peer is not waited for any longer.
func TestPathOfALinkThatMeetsLater(t *testing.T) {
	networks := []path.Network{path.InfiniBand}
	begin := func() (sides [2]*side) {
		sides, rails := newSides()
		for i, s := range sides {
			s.rail.Link = &later{}
			s.Begin(1, rails[i], networks, networks)
		}
		for i := range 2 { // the offers
			sides[i].deliver(t, 1, sides[1-i])
		}
		for _, s := range sides {
			require.Empty(t, s.sent, "not ready before they have met")
			require.False(t, s.Settled())
		}
		return sides
	}
	sides := begin()
	a, b := sides[0], sides[1]
	addr := a.List[0].Addr
	a.ConnectionUp(2, &a.rail, addr+1)
	require.Empty(t, a.sent, "another connection")
	a.ConnectionUp(2, &a.rail, addr)
	a.ConnectionUp(2, &a.rail, addr)
	require.Len(t, a.sent, 1)
	a.deliver(t, 2, b)
	require.False(t, a.List[0].Up())
	require.False(t, b.List[0].Up())
	b.ConnectionUp(3, &b.rail, b.List[0].Addr)
	b.deliver(t, 3, a)
	require.True(t, a.List[0].Up())
	require.True(t, b.List[0].Up())

	sides = begin()
	a, b = sides[0], sides[1]
	a.ConnectionDown(2, &a.rail, a.List[0].Addr, errors.New("refused"))
	a.deliver(t, 2, b)
	require.True(t, a.Settled())
	require.True(t, b.Settled())
	require.Contains(t, b.List[0].Reason, "refused")
	require.Zero(t, a.ups+b.ups+a.downs+b.downs)
}

// A binding is over with the round of its path.
func TestBindingEndsWithItsRound(t *testing.T) {
	sides, rails := newSides()
	networks := []path.Network{path.InfiniBand}
	for i, s := range sides {
		s.Begin(1, rails[i], networks, networks)
	}
	require.True(t, sides[0].List[0].Bind().Over, "not up yet")
	for i := range 4 {
		sides[i%2].deliver(t, 1, sides[1-i%2])
	}
	b := sides[0].List[0].Bind()
	require.False(t, b.Over)
	require.EqualValues(t, 1, b.Round)
	sides[1].rail.Err = errors.New("gone")
	sides[1].RailDown(2, &sides[1].rail, sides[1].rail.Err)
	sides[1].deliver(t, 2, sides[0])
	require.True(t, sides[0].List[0].Bind().Over)
	require.Contains(t, sides[0].List[0].Reason, "the peer says: ib is down at b: gone")
	require.ErrorIs(t, sides[0].Receive(3, &control.PathState{Network: path.InfiniBand, Round: 9, Stage: control.Ready}),
		control.ErrMalformed)
	require.ErrorIs(t, sides[0].Receive(3, &control.PathState{Network: path.SharedMemory, Round: 1,
		Stage: control.Ready}), control.ErrMalformed)
}
