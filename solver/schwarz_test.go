package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/solver/method"
)

// together lets the peers of a run take turns, every message arriving at once and in
// order, until all are done.
func together(t testing.TB, configs []Config) []Peer {
	peers := make([]Peer, len(configs))
	for r := range peers {
		p, err := New(configs[r])
		require.NoError(t, err)
		peers[r] = p
	}
	for done, moved := 0, true; done < len(peers); {
		require.True(t, moved, "stuck")
		done, moved = 0, false
		for r, p := range peers {
			for op := p.Next(0); ; op = p.Next(0) {
				if op.Kind == OpDone {
					done++
				}
				if op.Kind == OpDone || op.Kind == OpWait {
					break
				}
				moved = true
				act(t, peers, Rank(r), op)
			}
		}
	}
	return peers
}

func act(t testing.TB, peers []Peer, r Rank, op Op) {
	switch op.Kind {
	case OpRelax:
		peers[r].Relax(op)
	case OpSend:
		buf := make([]byte, op.Bytes)
		peers[r].Pack(op, buf)
		require.NoError(t, peers[op.To].Halo(0, r, op.Tag, op.Label, buf))
	case OpAgree:
		require.NoError(t, peers[op.To].Agree(0, r, op.Message))
	case OpStep:
	default:
		require.Fail(t, "an operation that was not expected", "%+v", op)
	}
}

// collected is the assembled answer.
func collected(p *Problem, peers []Peer) []float64 {
	u := make([]float64, p.Points())
	for _, q := range peers {
		v := make([]float64, q.Box().Points())
		q.Solution(v)
		q.Box().each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}

// anySchwarz draws a method without a coarse correction and with a fixed amount of work.
func anySchwarz(t *rapid.T) MethodConfig {
	return MethodConfig{
		Name: Schwarz, Coarse: -1, Omega: 1.2,
		Local:   rapid.SampledFrom([]string{Richardson, SOR, Multigrid}).Draw(t, "local"),
		Overlap: rapid.SampledFrom([]int{0, 1, 2, 3, 8}).Draw(t, "overlap"),
		Work:    rapid.IntRange(1, 3).Draw(t, "work"),
	}
}

// emulated is the Schwarz method on one machine, on a vector of the whole grid: every box
// grown by the overlap is solved from the same iterate, and its own points are kept.
func emulated(t require.TestingT, p *Problem, part Partition, m MethodConfig, exchanges int) []float64 {
	side := [3]int{p.N[0] + 2, p.N[1] + 2, p.N[2] + 2}
	at := func(idx [3]int) int { return idx[0] + side[0]*(idx[1]+side[1]*idx[2]) }
	u := make([]float64, side[0]*side[1]*side[2])
	_, reference, err := NewSystem(p, Box{Hi: p.N})
	require.NoError(t, err)
	whole, err := newBlock(p, Box{Hi: p.N})
	require.NoError(t, err)
	_, err = whole.start(reference, nil)
	require.NoError(t, err)
	each := func(b *block, f func(i int, idx [3]int)) {
		b.box.each(func(_ int, idx [3]int) bool { f(b.index(idx), idx); return true })
		b.eachGhost(func(i int, idx [3]int) bool { f(i, idx); return true })
	}
	each(whole, func(i int, idx [3]int) { u[at(idx)] = reference[i] })
	var solvers []*localSolve
	var blocks []*block
	for r := range part.Peers() {
		ext := part.Box(Rank(r))
		for a := range 3 {
			ext.Lo[a], ext.Hi[a] = max(0, ext.Lo[a]-m.Overlap), min(p.N[a], ext.Hi[a]+m.Overlap)
		}
		s, _, err := NewSystem(p, ext)
		require.NoError(t, err)
		solver, err := method.New(m.Local, s, method.Options{Omega: m.Omega, Unguarded: true})
		require.NoError(t, err)
		b, err := newBlock(p, ext)
		require.NoError(t, err)
		sweep, err := b.sweep(1)
		require.NoError(t, err)
		solvers, blocks = append(solvers, newLocalSolve(solver, sweep, b.layout, Sequential{}, false)), append(blocks, b)
	}
	for range exchanges {
		next := append([]float64(nil), u...)
		for r, solver := range solvers {
			b := blocks[r]
			v := make([]float64, b.layout.Len())
			each(b, func(i int, idx [3]int) { v[i] = u[at(idx)] })
			for solver.begin(v, m.Work, true); !solver.over; {
				solver.step(v)
			}
			part.Box(Rank(r)).each(func(_ int, idx [3]int) bool { next[at(idx)] = v[b.index(idx)]; return true })
		}
		u = next
	}
	out := make([]float64, 0, p.Points())
	Box{Hi: p.N}.each(func(_ int, idx [3]int) bool { out = append(out, u[at(idx)]); return true })
	return out
}

func TestSchwarzInLockstepIsItsEmulation(t *testing.T) {
	for _, s := range []Scheme{Synchronous(), BoundedDelay(0)} {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := anyProblem(t)
				c := Config{
					Problem: p, Partition: anyPartition(t, p), Scheme: s, Method: anySchwarz(t),
					MaxSweeps: Iteration(rapid.IntRange(1, 6).Draw(t, "exchanges")), Executor: backwards{},
				}
				n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
				require.NoError(t, err)
				if s.Asynchronous() {
					n.loss, n.double = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
				}
				require.NoError(t, n.run())
				o := n.peers[0].Outcome()
				if o.Reason == Converged { // nothing was left to do, to the last bit
					return
				}
				require.Equal(t, ReachedSweeps, o.Reason)
				require.Equal(t, c.MaxSweeps, o.Sweeps)
				requireSameBits(t, emulated(t, p, c.Partition, c.Method, int(c.MaxSweeps)), n.assemble(p, c.Partition))
			})
		})
	}
}

// mostPeers of a drawn run that ends by its tolerance: every pair of hundreds would have a
// session here.
const mostPeers = 12

// TestSchwarzConverges: whatever the scheme, the local method, the overlap, the work and
// the coarse correction, over a network that loses and reorders, the residual of the
// answer is what was asked for and what the peers believe.
func TestSchwarzConverges(t *testing.T) {
	for _, s := range []Scheme{Synchronous(), Asynchronous(), BoundedDelay(2), Hybrid(nil)} {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := anyProblem(t)
				m := anySchwarz(t)
				m.Omega = 0
				m.Coarse = rapid.SampledFrom([]int{-1, 0, 30}).Draw(t, "coarse")
				m.Work = rapid.IntRange(0, 3).Draw(t, "work")
				m.Flexible = s.Name() == "async" && rapid.Bool().Draw(t, "flexible")
				c := Config{Problem: p, Partition: anyPartition(t, p), Scheme: s, Method: m, Tolerance: 1e-6}
				if c.Partition.Peers() > mostPeers {
					c.Partition, _ = Slabs(p.N, 1, nil)
				}
				if s.Name() == "hybrid" {
					c.Scheme = Hybrid(Clusters(c.Partition, rapid.IntRange(1, 3).Draw(t, "clusters")))
				}
				n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
				require.NoError(t, err)
				if c.Scheme.Asynchronous() {
					n.loss, n.double = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
				}
				require.NoError(t, n.run())
				for r, q := range n.peers {
					require.Equal(t, Converged, q.Outcome().Reason, "rank %d", r)
				}
				e, err := Evaluate(p, n.assemble(p, c.Partition), nil)
				require.NoError(t, err)
				require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
				require.Equal(t, e.RelativeResidual, n.peers[0].Outcome().Residual, "what the peers believe of it")
			})
		})
	}
}

// FuzzSchwarz feeds any messages, in any state, to a peer in the middle of the tree: it may
// refuse them, it must not panic, spin or say that it is done without a reason.
func FuzzSchwarz(f *testing.F) {
	for i, m := range samples() {
		f.Add(m.encode(), uint8(i))
	}
	for i, kind := range []messageKind{msgLayers, msgShares, msgCorrection} {
		for n := range 6 {
			m := message{kind: kind, number: uint64(n % 3), iterate: Iteration(n), values: make([]byte, 40*n)}
			if n > 0 {
				m.values[0] = 2 // a share of rank 2
			}
			f.Add(m.encode(), uint8(37*i+n))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8) {
		p := membrane([3]int{2, 2, 6}, 3)
		part, err := Slabs(p.N, 3, nil)
		require.NoError(t, err)
		if what&8 != 0 {
			base := *p
			p.Evolution = &Evolution{End: 1, Steps: 3, At: func(float64) *Problem { q := base; return &q }}
		}
		schemes := []Scheme{Synchronous(), Asynchronous(), BoundedDelay(0), Hybrid([]int{0, 0, 1})}
		w, err := New(Config{
			Problem: p, Partition: part, Scheme: schemes[what%4], Rank: Rank(what >> 2 % 3), MaxSweeps: 5,
			Method: MethodConfig{Name: Schwarz, Overlap: int(what>>5) % 3, Local: SOR, Work: 1, Coarse: 4},
		})
		require.NoError(t, err)
		rank := w.(*schwarz).config.Rank
		for n := 0; n < 8; n++ {
			for range 30 {
				op := w.Next(0)
				switch op.Kind {
				case OpRelax:
					w.Relax(op)
				case OpSend:
					w.Pack(op, make([]byte, op.Bytes))
				}
				if op.Kind == OpWait || op.Kind == OpDone {
					break
				}
			}
			q := (rank + 1 + Rank(n%2)) % 3
			size := min(len(data), 1+int(what)*n)
			_ = w.Agree(0, q, data)
			_ = w.Agree(0, q, data[:size])
			for _, l := range w.Links() {
				if len(l.Slots) > 0 {
					halo := make([]byte, l.Slots[0])
					copy(halo, data)
					_ = w.Halo(0, l.Rank, uint32(n)%2, packLabel(int(what>>4)%4, n%5/4, Iteration(what)%3), halo)
				}
			}
		}
		if w.Next(0).Kind == OpDone {
			require.NotEqual(t, Running, w.Outcome().Reason)
		}
	})
}
