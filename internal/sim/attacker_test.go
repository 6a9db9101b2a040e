package sim

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

var (
	attackSeed  = flag.Uint64("attack.seed", 1, "first seed of TestAttacks")
	attackCount = flag.Uint64("attack.count", 60, "number of seeds of TestAttacks")
)

// attacked runs a seed with an attacker on every link.
func attacked(seed uint64, p p2psap.Protection) (*Scenario, *Result, p2psap.NodeCounters, error) {
	var sum p2psap.NodeCounters
	s, err := Draw(seed)
	if err != nil {
		return s, nil, sum, err
	}
	s.Protect, s.Attack = p, 0.1
	c, err := New(s, ctp.Catalog(), p2psap.TablePolicy{})
	if err != nil {
		return s, nil, sum, err
	}
	if err = c.Run(); err != nil {
		return s, nil, sum, err
	}
	r, err := c.Check()
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
		require.Greater(t, sum.FramesForged, uint64(100))
		require.Greater(t, sum.FramesReplayed, uint64(100))
		require.Greater(t, sum.FramesUnprotected, uint64(100))
	}
}

// Without protection the attacker spoils runs.
func TestAttacksSucceedWithoutProtection(t *testing.T) {
	spoilt := 0
	for seed := range uint64(80) {
		if _, _, _, err := attacked(seed, p2psap.ProtectNever); err != nil {
			spoilt++
		}
		if spoilt >= 3 {
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
