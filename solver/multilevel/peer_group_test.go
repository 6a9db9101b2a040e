package multilevel

import (
	"math"
	"math/rand/v2"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// peerGroup runs the peers of a run in a random order over reliable channels that are in order per tag. It
// receives into one buffer per tag, as the shells do.
type peerGroup struct {
	t     require.TestingT
	rng   *rand.Rand
	peers []problem.Peer
	links [][]iterate.Link // of each peer
	wait  []bool
	done  []bool
	queue map[[3]int][]sent // from, to, tag
	slots map[[3]int][]byte
	steps [][]iterate.StepResult
	turns int
	sent  int // messages
	stop  func(c *peerGroup)
}

type sent struct {
	label uint64
	data  []byte
}

func newPeerGroup(t require.TestingT, seed uint64, c problem.Config) *peerGroup {
	k := &peerGroup{t: t, rng: rand.New(rand.NewPCG(seed, 3)), queue: map[[3]int][]sent{}, slots: map[[3]int][]byte{}}
	for _, one := range solvertest.ConfigsFor(c) {
		p, err := newPeerOf(one)
		require.NoError(t, err)
		links := p.Links()
		for _, l := range links {
			for tag, n := range l.Slots {
				k.slots[[3]int{int(l.Rank), int(one.Rank), tag}] = make([]byte, n)
			}
		}
		k.peers, k.links = append(k.peers, p), append(k.links, links)
		k.wait = append(k.wait, false)
		k.done = append(k.done, false)
		k.steps = append(k.steps, nil)
	}
	return k
}

// run runs the peers in random order until all are done.
func (k *peerGroup) run() *peerGroup {
	left := len(k.peers)
	for left > 0 {
		k.turns++
		if k.turns >= 3_000_000 { // require for every turn would take most of the time
			require.Fail(k.t, "the peers do not end")
		}
		if len(k.peers) == 1 && k.wait[0] {
			require.Fail(k.t, "a single peer waits")
		}
		i := k.rng.IntN(len(k.peers))
		if k.done[i] {
			continue
		}
		if k.wait[i] || k.rng.IntN(3) == 0 {
			k.poll(i)
		}
		if k.wait[i] {
			continue
		}
		if k.act(i) {
			left--
		}
		if k.stop != nil {
			k.stop(k)
		}
	}
	return k
}

// poll receives at most one message per tag.
func (k *peerGroup) poll(i int) {
	for _, l := range k.links[i] {
		for tag := range l.Slots {
			key := [3]int{int(l.Rank), i, tag}
			q := k.queue[key]
			if len(q) == 0 || k.rng.IntN(4) == 0 {
				continue
			}
			k.queue[key] = q[1:]
			buf := k.slots[key]
			copy(buf, q[0].data)
			require.NoError(k.t, k.peers[i].Halo(0, l.Rank, uint32(tag), q[0].label, buf[:len(q[0].data)]))
			k.wait[i] = false
		}
	}
}

func (k *peerGroup) act(i int) (done bool) {
	p := k.peers[i]
	op := p.Next(0)
	switch op.Kind {
	case iterate.OpRelax:
		p.Relax(op)
	case iterate.OpSend:
		data := make([]byte, op.Bytes)
		p.Pack(op, data)
		key := [3]int{i, int(op.To), int(op.Tag)}
		require.LessOrEqual(k.t, len(data), len(k.slots[key]), "a message exceeds its slot")
		k.queue[key] = append(k.queue[key], sent{op.Label, data})
		k.sent++
	case iterate.OpWait:
		k.wait[i] = true
	case iterate.OpStep:
		k.steps[i] = append(k.steps[i], *op.Step)
	case iterate.OpDone:
		k.done[i] = true
		return true
	default:
		require.Fail(k.t, "unexpected operation", "%+v", op)
	}
	return false
}

// answer returns the assembled solution.
func (k *peerGroup) answer(p *problem.Problem) []float64 {
	u := make([]float64, p.Points())
	for _, peer := range k.peers {
		box := peer.Box()
		v := make([]float64, box.Points())
		peer.Solution(v)
		box.Each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}

// alone returns the configuration with one peer.
func alone(c problem.Config) problem.Config {
	c.Partition = problem.Partition{Cuts: [3][]int{{0, c.Problem.N[0]}, {0, c.Problem.N[1]}, {0, c.Problem.N[2]}}}
	if c.Scheme.Name() == "hybrid" {
		c.Scheme = iterate.Hybrid([]int{0})
	}
	return c
}

// sameAsAlone runs a configuration with its partition and with one peer and requires the same bits.
func sameAsAlone(t require.TestingT, seed uint64, c problem.Config) (*peerGroup, *peerGroup) {
	one, many := newPeerGroup(t, seed, alone(c)).run(), newPeerGroup(t, seed, c).run()
	want := one.peers[0].Outcome()
	for r, p := range many.peers {
		got := p.Outcome()
		require.Equal(t, want.Reason, got.Reason, "rank %d", r)
		require.Equal(t, want.Sweeps, got.Sweeps, "rank %d", r)
		require.Equal(t, math.Float64bits(want.Residual), math.Float64bits(got.Residual), "rank %d: %v and %v",
			r, want.Residual, got.Residual)
		require.Equal(t, one.steps[0], many.steps[r])
	}
	solvertest.RequireSameBits(t, one.answer(c.Problem), many.answer(c.Problem))
	return one, many
}
