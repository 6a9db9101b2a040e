package sim

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

var (
	attackSeed  = flag.Uint64("attack.seed", 1, "first seed of TestAttacks")
	attackCount = flag.Uint64("attack.count", 30, "number of seeds of TestAttacks")
)

// attacked runs a seed with an attacker on every link.
func attacked(seed uint64, p p2psap.Protection) (*Scenario, *Result, p2psap.NodeCounters, error) {
	var sum p2psap.NodeCounters
	s, err := Draw(seed)
	if err != nil {
		return s, nil, sum, err
	}
	s.Protect = p
	c, err := New(s)
	if err != nil {
		return s, nil, sum, err
	}
	c.tap = newAttacker(c).watch
	r, err := c.runAndCheck()
	if r == nil {
		return s, nil, sum, err
	}
	for _, p := range c.peers {
		n := p.node.Counters()
		sum.FramesForged += n.FramesForged
		sum.FramesReplayed += n.FramesReplayed
		sum.FramesUnprotected += n.FramesUnprotected
		sum.FramesUnknown += n.FramesUnknown
		sum.FramesMalformed += n.FramesMalformed
	}
	return s, r, sum, err
}

// An attacker that forges, replays and reflects frames on the links changes no answer: the
// synchronous one has the bits of the sequential method, and every other one its residual.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		*attackCount = min(*attackCount, 24)
	}
	var sum p2psap.NodeCounters
	changes := uint64(0)
	for seed := *attackSeed; seed < *attackSeed+*attackCount; seed++ {
		s, r, n, err := attacked(seed, p2psap.ProtectAlways)
		require.NoError(t, err,
			"seed %d: %v\nreplay: go test ./internal/sim -run 'TestAttacks$' -count=1 -v -attack.seed=%d -attack.count=1",
			seed, s, seed)
		if *attackCount == 1 {
			t.Logf("%v: %+v, %+v", s, r, n)
		}
		changes += r.Changes
		sum.FramesForged += n.FramesForged
		sum.FramesReplayed += n.FramesReplayed
		sum.FramesUnprotected += n.FramesUnprotected
		sum.FramesUnknown += n.FramesUnknown
	}
	t.Logf("%d seeds: %d changes of composition; %d forged, %d replayed, %d unprotected, %d of no session", *attackCount,
		changes, sum.FramesForged, sum.FramesReplayed, sum.FramesUnprotected, sum.FramesUnknown)
	if *attackCount >= 20 {
		require.Positive(t, changes)
		require.Greater(t, sum.FramesForged, 3**attackCount)
		require.Greater(t, sum.FramesReplayed, 3**attackCount)
		require.Greater(t, sum.FramesUnprotected, 3**attackCount)
	}
}

// Without protection the attacker spoils runs.
func TestAttacksSucceedWithoutProtection(t *testing.T) {
	spoilt, enough := 0, 3
	if testing.Short() {
		enough = 1
	}
	for seed := range uint64(80) {
		if _, _, _, err := attacked(seed, p2psap.ProtectNever); err != nil {
			spoilt++
		}
		if spoilt >= enough {
			return
		}
	}
	t.Fatalf("%d of 80 runs were spoilt", spoilt)
}

// A seed determines the run, also under attack.
func TestAttackedSeedReplays(t *testing.T) {
	for seed := range uint64(4) {
		_, a, na, err := attacked(seed, p2psap.ProtectAlways)
		require.NoError(t, err)
		_, b, nb, err := attacked(seed, p2psap.ProtectAlways)
		require.NoError(t, err)
		forget(a, b)
		require.Equal(t, fmt.Sprintf("%+v %+v", a, na), fmt.Sprintf("%+v %+v", b, nb))
	}
}

// attacker reads all frames of all links and injects frames of its own. It does not know the run's
// secret.
type attacker struct {
	c      *Cluster
	rand   *rand.Rand
	seen   [attackerMemory][]byte
	number int // of frames stored so far
	forged uint64
}

// attackRate is the probability per frame that it injects one.
const attackRate = 0.1

// attackerMemory is the number of frames that it stores for replay.
const attackerMemory = 256

func newAttacker(c *Cluster) *attacker {
	return &attacker{c: c, rand: rand.New(rand.NewPCG(c.Scenario.Seed, 0x61747461636b))}
}

// watch observes a frame or a train in transit.
func (a *attacker) watch(from, to iterate.Rank, f microproto.Frame) {
	f.Retain().Pieces(func(p microproto.Frame) {
		if a.rand.Float64() < attackRate {
			a.seen[a.number%attackerMemory] = bytes.Clone(p.Data)
			a.number++
			a.strike(from, to)
		}
		p.Release()
	})
}

// strike injects a frame to one of the two ends soon.
func (a *attacker) strike(from, to iterate.Rank) {
	frame := bytes.Clone(a.seen[a.rand.IntN(min(a.number, attackerMemory))])
	if a.rand.IntN(2) == 0 {
		from, to = to, from
	}
	body := frame[min(p2psap.HeaderBytes, len(frame)):]
	switch a.rand.IntN(7) {
	case 0: // replay, or reflection to the sender
	case 1:
		if len(body) > 0 {
			body[a.rand.IntN(len(body))] ^= 1 << a.rand.IntN(8)
		}
	case 2: // other bytes after the same header
		for i := range body {
			body[i] = byte(a.rand.Uint32())
		}
	case 3: // another sequence number
		if len(body) >= 8 {
			binary.BigEndian.PutUint64(body, a.rand.Uint64N(1<<20))
		}
	case 4: // unprotected, in another epoch
		frame[0] = p2psap.WireVersion
		frame[1] += uint8(a.rand.IntN(2))
	case 5: // truncated
		frame = frame[:a.rand.IntN(len(frame))]
	case 6: // in a session of the other end
		if halos := a.c.peers[to].halos(); len(halos) > 0 && len(frame) >= p2psap.HeaderBytes {
			id := halos[a.rand.IntN(len(halos))]
			binary.BigEndian.PutUint32(frame[4:], uint32(id))
		}
	}
	a.forged++
	a.c.clock.After(time.Duration(a.rand.Int64N(int64(5*time.Millisecond))), func() {
		a.c.arrive(to, from, microproto.NewBuffer(frame, nil).Frame(0, 0, len(frame)))
	})
}

// halos returns the halo sessions with all neighbours.
func (p *peer) halos() (out []p2psap.SessionID) {
	p.Sessions(func(id p2psap.SessionID, halo bool) {
		if halo {
			out = append(out, id)
		}
	})
	return out
}
