package launch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Whatever happens to its peers and leaders, a run goes on or ends. Losses, silences, broken paths, results and processes
// that join or leave meet in any order.
func TestShippedRunsGoOnOrEnd(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 200
	}
	succeeded, moved := 0, 0 // leaders and parts
	for seed := range seeds {
		w := randomMeeting(t, seed)
		for range 1 + w.rand.IntN(6) {
			w.fault()
			for range w.rand.IntN(40) {
				if w.rand.IntN(10) == 0 || !w.deliver() {
					w.tick()
				}
			}
		}
		w.settle()
		w.over()
		moved += len(w.r.moves)
		if succeeded += w.led; t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.NotZero(t, succeeded, "no process has led a run after another one")
	require.NotZero(t, moved, "no part has moved")
}

func randomMeeting(t *testing.T, seed uint64) *meeting {
	bits := rand.New(rand.NewPCG(seed, 2)).Uint64()
	return meetingOf(t, seed, func(p *Plan) {
		if vary(p, bits); bits&32 != 0 {
			p.Scheme = "async"
		}
		p.BalanceParts = bits&64 != 0
	})
}

// fault lets something happen to a peer.
func (w *meeting) fault() {
	m := w.r.members[w.rand.IntN(len(w.r.members))]
	switch w.rand.IntN(10) {
	case 9: // time passes
		for range 100 + w.rand.IntN(200) {
			w.tick()
			for w.rand.IntN(4) > 0 && w.deliver() {
			}
		}
	case 8:
		w.loseLeader()
	case 0, 1:
		w.kill(m.rank)
	case 2:
		w.spare(fmt.Sprintf("host %d", w.rand.IntN(4)))
	case 3:
		if m.conn != 0 {
			w.actors[m.conn-1].send(rendezvous.Leave{})
		}
	case 4:
		if m.conn != 0 {
			other := w.rand.IntN(len(w.r.members))
			w.actors[m.conn-1].send(rendezvous.Unreachable{Epoch: w.r.epoch, Rank: other, Why: "no word"})
		}
	case 6:
		for _, a := range w.actors {
			if w.r.failure == nil {
				a.finish(Converged)
			}
		}
	case 7: // some know before the others
		if m.conn != 0 && w.r.failure == nil {
			w.actors[m.conn-1].finish(Converged)
		}
	case 5:
		w.silence(m)
	}
}

func (w *meeting) spare(host string) {
	a := w.connect(host, 0, -1)
	a.say(event{joined: &a.caller})
}
