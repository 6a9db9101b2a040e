package schwarz

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// emulated runs the Schwarz method without peers on a vector of the whole grid: each box, extended by the overlap, is
// solved from the same iterate, and its own points are kept.
func emulated(
	t require.TestingT, p *problem.Problem, part problem.Partition, m problem.MethodConfig, exchanges int,
) []float64 {
	side := [3]int{p.N[0] + 2, p.N[1] + 2, p.N[2] + 2}
	at := func(idx [3]int) int { return idx[0] + side[0]*(idx[1]+side[1]*idx[2]) }
	u := make([]float64, side[0]*side[1]*side[2])
	_, reference, err := problem.NewSystem(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	whole, err := problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	_, err = whole.Start(reference, nil)
	require.NoError(t, err)
	each := func(b *problem.Discretization, f func(i int, idx [3]int)) {
		b.Box.Each(func(_ int, idx [3]int) bool { f(b.Index(idx), idx); return true })
		b.EachGhost(func(i int, idx [3]int) bool { f(i, idx); return true })
	}
	each(whole, func(i int, idx [3]int) { u[at(idx)] = reference[i] })
	var solvers []*localSolve
	var blocks []*problem.Discretization
	for r := range part.Peers() {
		ext := part.Box(iterate.Rank(r))
		for a := range 3 {
			ext.Lo[a], ext.Hi[a] = max(0, ext.Lo[a]-m.Overlap), min(p.N[a], ext.Hi[a]+m.Overlap)
		}
		s, _, err := problem.NewSystem(p, ext)
		require.NoError(t, err)
		solver, err := method.New(m.Local, s, method.Options{Omega: m.Omega, Unguarded: true})
		require.NoError(t, err)
		b, err := problem.Discretize(p, ext)
		require.NoError(t, err)
		sweep, err := b.Sweep(1)
		require.NoError(t, err)
		solvers = append(solvers, newLocalSolve(solver, sweep, b.Layout, problem.Sequential{}, false,
			new(problem.Config).NewArray))
		blocks = append(blocks, b)
	}
	for range exchanges {
		next := append([]float64(nil), u...)
		for r, solver := range solvers {
			b := blocks[r]
			v := make([]float64, b.Layout.Len())
			each(b, func(i int, idx [3]int) { v[i] = u[at(idx)] })
			for solver.begin(v, m.InnerCycles, true); !solver.complete; {
				solver.step(v)
			}
			part.Box(iterate.Rank(r)).Each(func(_ int, idx [3]int) bool { next[at(idx)] = v[b.Index(idx)]; return true })
		}
		u = next
	}
	out := make([]float64, 0, p.Points())
	problem.Box{Hi: p.N}.Each(func(_ int, idx [3]int) bool { out = append(out, u[at(idx)]); return true })
	return out
}

func TestSchwarzInLockstepEqualsEmulation(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)} {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := solvertest.AnyProblem(t)
				c := problem.Config{
					Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: s, Method: solvertest.AnySchwarz(t),
					MaxSweeps: iterate.Iteration(rapid.IntRange(1, 6).Draw(t, "exchanges")), Executor: solvertest.Backwards{},
				}
				n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
				require.NoError(t, err)
				if s.Asynchronous() {
					n.Loss, n.Duplicate = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
				}
				require.NoError(t, n.Run())
				o := n.Peers[0].Outcome()
				if o.Reason == iterate.Converged { // the residual is exactly 0
					return
				}
				require.Equal(t, iterate.ReachedSweeps, o.Reason)
				require.Equal(t, c.MaxSweeps, o.Sweeps)
				want := emulated(t, p, c.Partition, c.Method, int(o.Iterate)) // an earlier one if the last has a larger residual
				solvertest.RequireSameBits(t, want, n.Assemble(p))
			})
		})
	}
}

// TestSchwarzConvergesInEveryScheme checks that, for any scheme, local method, overlap, number of cycles and coarse
// correction, over a network that loses and reorders messages, the residual of the answer meets the tolerance and
// equals the one that the peers report.
func TestSchwarzConvergesInEveryScheme(t *testing.T) {
	schemes := []iterate.Scheme{
		iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2), iterate.Hybrid(nil),
	}
	for _, s := range schemes {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := solvertest.AnyProblem(t)
				m := solvertest.AnySchwarz(t)
				m.Omega = 0
				m.Coarse = rapid.SampledFrom([]int{-1, 0, 30}).Draw(t, "coarse")
				m.InnerCycles = rapid.IntRange(0, 3).Draw(t, "work")
				m.Flexible = s.Name() == "async" && rapid.Bool().Draw(t, "flexible")
				c := problem.Config{
					Problem:   p,
					Partition: solvertest.AnyPartition(t, p),
					Scheme:    s,
					Method:    m,
					Tolerance: 1e-6,
				}
				if c.Partition.Peers() > solvertest.MostPeers {
					c.Partition, _ = problem.Slabs(p.N, 1, nil)
				}
				if s.Name() == "hybrid" {
					c.Scheme = iterate.Hybrid(problem.Clusters(c.Partition, rapid.IntRange(1, 3).Draw(t, "clusters")))
				}
				n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
				require.NoError(t, err)
				if c.Scheme.Asynchronous() {
					n.Loss, n.Duplicate = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
				}
				require.NoError(t, n.Run())
				for r, q := range n.Peers {
					require.Equal(t, iterate.Converged, q.Outcome().Reason, "rank %d", r)
				}
				e, err := verify.Evaluate(p, n.Assemble(p), nil)
				require.NoError(t, err)
				require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
				require.Equal(t, e.RelativeResidual, n.Peers[0].Outcome().Residual, "the residual that the peers report")
			})
		})
	}
}

// FuzzMessages feeds arbitrary messages in any state to a peer in the middle of the tree. It may reject them
// but must not panic, loop or end without a reason.
func FuzzMessages(f *testing.F) {
	for i, m := range solvertest.Samples() {
		f.Add(m.Encode(), uint8(i))
	}
	for i, kind := range []iterate.MessageKind{iterate.MsgLayers, iterate.MsgShares, iterate.MsgCorrection} {
		for n := range 6 {
			m := iterate.Message{
				Kind:    kind,
				Number:  uint64(n % 3),
				Iterate: iterate.Iteration(n),
				Values:  make([]byte, 40*n),
			}
			if n > 0 {
				m.Values[0] = 2 // a share of rank 2
			}
			f.Add(m.Encode(), uint8(37*i+n))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8) {
		p := solvertest.Membrane([3]int{2, 2, 6}, 3)
		part, err := problem.Slabs(p.N, 3, nil)
		require.NoError(t, err)
		if what&8 != 0 {
			base := *p
			p.Evolution = &problem.Evolution{End: 1, Steps: 3, At: func(float64) *problem.Problem { q := base; return &q }}
		}
		schemes := []iterate.Scheme{
			iterate.Synchronous(),
			iterate.Asynchronous(),
			iterate.BoundedDelay(0),
			iterate.Hybrid([]int{0, 0, 1}),
		}
		w, err := newPeerOf(problem.Config{
			Problem: p, Partition: part, Scheme: schemes[what%4], Rank: iterate.Rank(what >> 2 % 3), MaxSweeps: 5,
			Method: problem.MethodConfig{
				Name:        problem.Schwarz,
				Overlap:     int(what>>5) % 3,
				Local:       problem.SOR,
				InnerCycles: 1,
				Coarse:      4,
			},
		})
		require.NoError(t, err)
		rank := w.(*peer).config.Rank
		for n := 0; n < 8; n++ {
			for range 30 {
				op := w.Next(0)
				switch op.Kind {
				case iterate.OpRelax:
					w.Relax(op)
				case iterate.OpSend:
					w.Pack(op, make([]byte, op.Bytes))
				}
				if op.Kind == iterate.OpWait || op.Kind == iterate.OpDone {
					break
				}
			}
			q := (rank + 1 + iterate.Rank(n%2)) % 3
			size := min(len(data), 1+int(what)*n)
			_ = w.Agree(0, q, data)
			_ = w.Agree(0, q, data[:size])
			for _, l := range w.Links() {
				if len(l.Slots) > 0 {
					halo := bytes.Repeat([]byte{0xff}, l.Slots[0])
					if err := w.Halo(0, l.Rank, 0, 0, halo); err != nil {
						require.ErrorIs(t, err, kernel.ErrNotFinite)
					}
					clear(halo)
					copy(halo, data)
					_ = w.Halo(
						0,
						l.Rank,
						uint32(n)%2,
						iterate.PackLabel(int(what>>4)%4, n%5/4, iterate.Iteration(what)%3),
						halo,
					)
				}
			}
		}
		if w.Next(0).Kind == iterate.OpDone {
			require.NotEqual(t, iterate.Running, w.Outcome().Reason)
		}
	})
}
