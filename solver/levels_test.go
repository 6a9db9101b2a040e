package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// crew drives the peers of a run in a random order, over channels that are reliable and
// in order tag by tag, and receive into one buffer a tag as the shells do.
type crew struct {
	t     require.TestingT
	rng   *rand.Rand
	peers []Peer
	wait  []bool
	done  []bool
	queue map[[3]int][]sent // from, to, tag
	slots map[[3]int][]byte
	steps [][]StepResult
	turns int
	sent  int // messages
	stop  func(c *crew)
}

type sent struct {
	label uint64
	data  []byte
}

func newCrew(t require.TestingT, seed uint64, c Config) *crew {
	k := &crew{t: t, rng: rand.New(rand.NewPCG(seed, 3)), queue: map[[3]int][]sent{}, slots: map[[3]int][]byte{}}
	for _, one := range configsFor(c) {
		p, err := New(one)
		require.NoError(t, err)
		for _, l := range p.Links() {
			for tag, n := range l.Slots {
				k.slots[[3]int{int(l.Rank), int(one.Rank), tag}] = make([]byte, n)
			}
		}
		k.peers, k.wait, k.done, k.steps = append(k.peers, p), append(k.wait, false), append(k.done, false), append(k.steps, nil)
	}
	return k
}

// run plays until everyone is done.
func (k *crew) run() *crew {
	left := len(k.peers)
	for left > 0 {
		k.turns++
		require.Less(k.t, k.turns, 3_000_000, "no end")
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

// poll takes in at most one message of every tag.
func (k *crew) poll(i int) {
	for _, l := range k.peers[i].Links() {
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

func (k *crew) act(i int) (done bool) {
	p := k.peers[i]
	op := p.Next(0)
	switch op.Kind {
	case OpRelax:
		p.Relax(op)
	case OpSend:
		data := make([]byte, op.Bytes)
		p.Pack(op, data)
		key := [3]int{i, int(op.To), int(op.Tag)}
		require.LessOrEqual(k.t, len(data), len(k.slots[key]), "more than the slot takes")
		k.queue[key] = append(k.queue[key], sent{op.Label, data})
		k.sent++
	case OpWait:
		k.wait[i] = true
	case OpStep:
		k.steps[i] = append(k.steps[i], *op.Step)
	case OpDone:
		k.done[i] = true
		return true
	default:
		require.Fail(k.t, "unexpected operation", "%+v", op)
	}
	return false
}

// answer is the assembled solution.
func (k *crew) answer(p *Problem) []float64 {
	u := make([]float64, p.Points())
	for _, peer := range k.peers {
		box := peer.Box()
		v := make([]float64, box.Points())
		peer.Solution(v)
		box.each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}

// alone is the configuration with one peer.
func alone(c Config) Config {
	c.Partition = Partition{Cuts: [3][]int{{0, c.Problem.N[0]}, {0, c.Problem.N[1]}, {0, c.Problem.N[2]}}}
	if _, ok := c.Scheme.(hybrid); ok {
		c.Scheme = Hybrid([]int{0})
	}
	return c
}

// sameAsAlone plays a configuration with its partition and with one peer.
func sameAsAlone(t require.TestingT, seed uint64, c Config) (*crew, *crew) {
	one, many := newCrew(t, seed, alone(c)).run(), newCrew(t, seed, c).run()
	want := one.peers[0].Outcome()
	for r, p := range many.peers {
		got := p.Outcome()
		require.Equal(t, want.Reason, got.Reason, "rank %d", r)
		require.Equal(t, want.Sweeps, got.Sweeps, "rank %d", r)
		require.Equal(t, math.Float64bits(want.Residual), math.Float64bits(got.Residual), "rank %d: %v and %v", r, want.Residual, got.Residual)
		require.Equal(t, one.steps[0], many.steps[r])
	}
	requireSameBits(t, one.answer(c.Problem), many.answer(c.Problem))
	return one, many
}

// redBlackOracle sweeps with plain loops over the whole grid: the method as a textbook
// has it, with the operations of package kernel's contract.
func redBlackOracle(t require.TestingT, p *Problem, omega float64, sweeps int) []float64 {
	s, err := newSequential(p, Jacobi)
	require.NoError(t, err)
	require.NoError(t, s.start(nil))
	diagonal := s.row[kernel.Center]
	for range sweeps {
		for colour := range 2 {
			s.each(func(i, d int, idx [3]int) {
				if (idx[0]+idx[1]+idx[2]-3)&1 != colour {
					return
				}
				r := s.defect(s.cur, i, d)
				v := s.cur[i] - float64(omega/diagonal*r)
				if s.rows != nil {
					v = s.cur[i] - float64(omega*float64(r/s.rows[d][kernel.Center]))
				}
				s.cur[i] = clamp(v, s.phi[d], s.psi[d])
			})
		}
	}
	return s.interior()
}

func TestRedBlackIsTheTextbooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		omega := rapid.Float64Range(0.5, 1.9).Draw(t, "omega")
		sweeps := rapid.IntRange(1, 30).Draw(t, "sweeps")
		c := Config{
			Problem: p, Partition: anyPartition(t, p), Scheme: Synchronous(), MaxSweeps: Iteration(sweeps),
			Method: MethodConfig{Name: SOR, Omega: omega}, Executor: threads{},
		}
		k := newCrew(t, 1, c).run()
		if k.peers[0].Outcome().Reason != ReachedSweeps {
			return // u⁰ solves it, or the residual is 0 to the last bit
		}
		require.EqualValues(t, sweeps, k.peers[0].Outcome().Sweeps)
		requireSameBits(t, redBlackOracle(t, p, omega, sweeps), k.answer(p))
	})
}

func TestRedBlackOnAnyPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		c := Config{
			Problem: p, Partition: anyPartition(t, p), Tolerance: 1e-5, MaxSweeps: 2000,
			Method: MethodConfig{Name: SOR, Omega: rapid.SampledFrom([]float64{0, 1.2, 1.6}).Draw(t, "omega")},
			Lag:    Iteration(rapid.IntRange(0, 3).Draw(t, "lag")),
		}
		c.Scheme = rapid.SampledFrom([]Scheme{Synchronous(), BoundedDelay(0), Hybrid(make([]int, c.Partition.Peers()))}).Draw(t, "scheme")
		if rapid.Bool().Draw(t, "check often") {
			c.CheckEvery = Iteration(rapid.IntRange(1, 10).Draw(t, "every"))
			c.Lag = min(c.Lag, c.CheckEvery)
		}
		one, _ := sameAsAlone(t, rapid.Uint64().Draw(t, "seed"), c)
		if o := one.peers[0].Outcome(); o.Reason == Converged {
			e, err := Evaluate(p, one.answer(p), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
		}
	})
}

func TestLevelsRefuse(t *testing.T) {
	p := membrane([3]int{7, 7, 7}, 3)
	for _, c := range []struct {
		change func(c *Config)
		says   string
	}{
		{func(c *Config) { c.Scheme = Asynchronous() }, "schwarz"},
		{func(c *Config) { c.Scheme = BoundedDelay(2) }, "delay:2"},
		{func(c *Config) { c.Order = InTurn }, "in-turn"},
		{func(c *Config) { c.Method.Omega = 2 }, "between 0 and 2"},
		{func(c *Config) { c.Tolerance = math.NaN() }, "tolerance"},
	} {
		config := Config{Problem: p, Partition: slabsOf(t, p, 2), Scheme: Synchronous(), Method: MethodConfig{Name: SOR}, Tolerance: 1e-6}
		c.change(&config)
		_, err := New(config)
		require.ErrorContains(t, err, c.says)
	}
}

// Bytes from the network never panic, whatever they are.
func FuzzLevelsHalo(f *testing.F) {
	p := membrane([3]int{5, 4, 3}, 3)
	part, err := GridOf(p.N, [3]int{1, 2, 2})
	require.NoError(f, err)
	f.Add(uint32(0), uint64(0), []byte("12345678"), uint32(2), uint64(0), []byte{0, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, tag uint32, label uint64, data []byte, tag2 uint32, label2 uint64, data2 []byte) {
		g, err := New(Config{Problem: p, Partition: part, Scheme: Synchronous(), Method: MethodConfig{Name: SOR}, Tolerance: 1e-6})
		require.NoError(t, err)
		for range 3 {
			for _, l := range g.Links() {
				_ = g.Halo(0, l.Rank, tag, label, data)
				_ = g.Halo(0, l.Rank, tag2, label2, data2)
			}
			for range 20 {
				op := g.Next(0)
				switch op.Kind {
				case OpRelax:
					g.Relax(op)
				case OpSend:
					g.Pack(op, make([]byte, op.Bytes))
				case OpFail:
					require.Error(t, op.Err)
					return
				}
			}
		}
	})
}

func TestSumsOnTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Levels{}
		g.total.init(g)
		n := rapid.IntRange(0, maxSums).Draw(t, "n")
		for i := range n {
			for _, v := range rapid.SliceOf(rapid.Float64()).Draw(t, "values") {
				g.total.sums[i].Add(v)
			}
		}
		g.wish = rapid.SampledFrom([]Reason{Running, Interrupted, ReachedTime}).Draw(t, "wish")
		g.total.give(n)
		g.total.encodeSums()
		require.LessOrEqual(t, len(g.total.bytes), sumsBytes)
		var back [maxSums]kernel.Sum
		wish, m, err := decodeSums(g.total.bytes, &back)
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, g.wish, wish)
		for i := range n {
			require.True(t, back[i].Equal(&g.total.sums[i]))
		}
		cut := rapid.IntRange(0, len(g.total.bytes)-1).Draw(t, "cut")
		_, _, err = decodeSums(g.total.bytes[:cut], &back)
		require.Error(t, err, fmt.Sprint(cut))
	})
}

// Time steps: every one begins where the one before ended, in lockstep.
func TestRedBlackInTimeSteps(t *testing.T) {
	p := heating(9, 3)
	for _, parts := range [][3]int{{2, 1, 1}, {2, 2, 1}, {3, 1, 1}} {
		part, err := GridOf(p.N, parts)
		require.NoError(t, err)
		one, _ := sameAsAlone(t, 5, Config{Problem: p, Partition: part, Scheme: Synchronous(), Tolerance: 1e-5, Method: MethodConfig{Name: SOR, Omega: 1.3}})
		require.Len(t, one.steps[0], p.Evolution.Steps)
		require.Equal(t, Converged, one.peers[0].Outcome().Reason)
	}
}
