package runner_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// modes are the ways of carrying messages, for faces of so many bytes.
var modes = map[string]func(c *ib.Config, bytes int){
	"segments":  func(c *ib.Config, _ int) { c.BlockBytes = 1024 },
	"messages":  func(c *ib.Config, bytes int) { c.MessageBytes = bytes },
	"one-sided": func(c *ib.Config, bytes int) { c.MessageBytes, c.WindowSlots = bytes, 4 },
}

// fabric holds peers over UDP on loopback, some of them with a software adapter.
type fabric struct {
	t     testing.TB
	ib    *ib.Fabric
	nodes []*driver.Node
}

func newFabric(t testing.TB, has []bool, settings func(c *ib.Config)) *fabric {
	t.Helper()
	f := &fabric{t: t, ib: ib.NewSoftwareFabric()}
	f.connect(len(has), func(i int, name string) []driver.Rail {
		if !has[i] {
			return nil
		}
		require.NoError(t, f.ib.Add(name))
		s := ib.Config{Name: name, Device: name, Fabric: f.ib, Peers: len(has)}
		settings(&s)
		l, err := ib.Open(s)
		require.NoError(t, err)
		return []driver.Rail{{Network: p2psap.InfiniBand, Link: l}}
	})
	return f
}

// connect adds nodes over UDP with more rails, and connects each with the next, as the neighbours of slabs.
func (f *fabric) connect(n int, rails func(i int, name string) []driver.Rail) {
	t := f.t
	t.Helper()
	ctx := await.Context(t)
	all := names(n)
	for i, name := range all {
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		c := driver.Config{
			Name: name, Plain: true, Rails: append([]driver.Rail{{Link: link}}, rails(i, name)...),
			Listen: "127.0.0.1:0", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
			Run: "test", Version: "1", Seed: uint64(i + 1),
			Monitor: p2psap.MonitorConfig{RailDwell: 5 * time.Millisecond},
		}
		n, err := driver.New(c)
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		f.nodes = append(f.nodes, n)
	}
	var wg sync.WaitGroup
	errs := make([]error, 2*len(all))
	for i := range len(all) - 1 {
		wg.Go(func() { errs[2*i] = f.nodes[i].Connect(ctx, all[i+1], f.nodes[i+1].ControlAddr().String()) })
		wg.Go(func() { errs[2*i+1] = f.nodes[i+1].Connect(ctx, all[i], f.nodes[i].ControlAddr().String()) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// within waits until a condition holds, and otherwise logs the sessions.
func (f *fabric) within(what string, holds func() bool) {
	await.Until(f, holds, "%s", what)
}

func (f *fabric) Helper() { f.t.Helper() }

// Fatalf ends the goroutine that waits, and the test once its peers have stopped.
func (f *fabric) Fatalf(format string, args ...any) {
	f.t.Errorf(format, args...)
	for i, n := range f.nodes {
		for _, s := range n.Sessions() {
			f.t.Logf("%d: %s with %s on %v, %v, epoch %d, %d moves", i, s.Name, s.Peer, s.Conditions.Network, s.State,
				s.Epoch,
				s.Moves)
		}
	}
	runtime.Goexit()
}

// all reports whether every session of a peer is on a network.
func (f *fabric) all(rank int, want p2psap.Network) bool {
	sessions := f.nodes[rank].Sessions()
	for _, s := range sessions {
		if s.Conditions.Network != want {
			return false
		}
	}
	return len(sessions) > 0
}

// Some peers have InfiniBand. Each pair uses its best network, and a synchronous result does not
// depend on it.
func TestMixedNetworks(t *testing.T) {
	p := membrane(t, 15)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-5, 0, 0, 0)
	require.NoError(t, err)
	for mode, settings := range modes {
		for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0),
			iterate.Asynchronous(), nil} {
			if testing.Short() && scheme != nil && scheme.Name() == "delay:0" {
				continue
			}
			for _, has := range [][]bool{{true, true, false, true}, {true, true, true}} {
				if testing.Short() && len(has) == 3 {
					continue
				}
				if scheme == nil || scheme.Name() == "hybrid" {
					scheme = iterate.Hybrid([]int{0, 0, 1, 1}[:len(has)])
				}
				t.Run(fmt.Sprintf("%s/%s/%v", mode, scheme.Name(), has), func(t *testing.T) {
					f := newFabric(t, has, func(c *ib.Config) {
						settings(c, 4096)
						c.Timeout = time.Minute // adapters must not time out on a busy machine
					})
					pl := plan{problem: p, peers: len(has), scheme: scheme, node: overNodes(f.nodes)}
					out := pl.run(t)
					for rank, o := range out {
						require.NoError(t, o.err, "rank %d", rank)
						for _, s := range append(o.result.Halos, o.result.Agreements...) {
							want := p2psap.Ethernet
							if has[rank] && has[s.Rank] {
								want = p2psap.InfiniBand
							}
							require.Equal(t, want, s.Info.Conditions.Network, "%s at %d", s.Info.Name, rank)
							require.Zero(t, s.Info.Moves, "%s at %d", s.Info.Name, rank)
						}
					}
					u := assemble(p, out)
					if scheme.Lockstep() {
						require.Equal(t, seq.Sweeps, out[0].result.Iterate)
						sameBits(t, seq.U, u)
					}
					e, err := verify.Evaluate(p, u, problem.Sequential{})
					require.NoError(t, err)
					require.LessOrEqual(t, e.RelativeResidual, 1e-5)
				})
			}
		}
	}
}

// Faces are packed into shared memory and unpacked from there: none is copied on the way, in any scheme.
func TestFacesInSharedMemory(t *testing.T) {
	p := membrane(t, 20)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-5, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			f, memory := &fabric{t: t}, shm.NewMemory()
			var links []*shm.Link
			f.connect(3, func(_ int, name string) []driver.Rail {
				l, err := shm.Open(shm.Config{Name: name, Memory: memory})
				require.NoError(t, err)
				links = append(links, l)
				return []driver.Rail{{Network: p2psap.Memory, Link: l}}
			})
			pl := plan{problem: p, peers: 3, scheme: scheme, node: overNodes(f.nodes)}
			out := pl.run(t)
			for rank, o := range out {
				require.NoError(t, o.err, "rank %d", rank)
				sent := uint64(0)
				for _, s := range o.result.Halos {
					sent += s.Info.MessagesSent
				}
				require.Positive(t, sent)
				require.Equal(t, sent, links[rank].Stats().InPlace)
			}
			u := assemble(p, out)
			if scheme.Lockstep() {
				sameBits(t, seq.U, u)
			}
			e, err := verify.Evaluate(p, u, problem.Sequential{})
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-5)
		})
	}
}

// A port fails and recovers while peers relax, at either end of a pair or in the middle. Sessions
// move to Ethernet and back, and a synchronous run has the bits and the sweeps of the sequential
// one.
func TestPortDownInMidRun(t *testing.T) {
	const peers, cycles = 3, 3
	p := membrane(t, 15)
	inShort := map[string]string{"segments": "sync", "messages": "async", "one-sided": "delay:0"}
	for mode, settings := range modes {
		for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0),
			iterate.Asynchronous()} {
			if testing.Short() && scheme.Name() != inShort[mode] {
				continue
			}
			t.Run(mode+"/"+scheme.Name(), func(t *testing.T) {
				f := newFabric(t, []bool{true, true, true}, func(c *ib.Config) { settings(c, 4096) })
				stop, running := make(chan struct{}), make(chan struct{})
				var once sync.Once
				pl := plan{problem: p, peers: peers, scheme: scheme, node: overNodes(f.nodes), change: func(rank int,
					c *runner.Config) {
					c.Solver.Tolerance, c.Stop = 0, stop
					if rank == 0 {
						c.ProgressEvery = time.Millisecond
						c.Progress = func(p runner.Progress) {
							if p.Sweep > 20 {
								once.Do(func() { close(running) })
							}
						}
					}
				}}
				moved := make(chan error, 1)
				go func() {
					defer close(stop)
					defer close(moved)
					moved <- f.swing(running, cycles)
				}()
				out := pl.run(t)
				require.NoError(t, <-moved)
				for rank, o := range out {
					require.NoError(t, o.err, "rank %d", rank)
					for _, s := range append(o.result.Halos, o.result.Agreements...) {
						require.GreaterOrEqual(t, s.Info.Moves, uint32(2), "%s at %d", s.Info.Name, rank)
					}
				}
				u := assemble(p, out)
				if scheme.Lockstep() {
					seq, err := richardson.SolveSequential(p, problem.Jacobi, 0, 0, 0, out[0].result.Iterate)
					require.NoError(t, err)
					sameBits(t, seq.U, u)
					t.Logf("%d sweeps", out[0].result.Iterate)
				}
				e, err := verify.Evaluate(p, u, problem.Sequential{})
				require.NoError(t, err)
				require.Less(t, e.RelativeResidual, 0.5, "it has come nearer")
			})
		}
	}
}

// swing fails and recovers one port after the other, and waits each time until the sessions have
// moved.
func (f *fabric) swing(running <-chan struct{}, cycles int) error {
	<-running
	for i := range cycles {
		rank := i % len(f.nodes)
		name := names(len(f.nodes))[rank]
		if err := f.ib.SetPort(name, false); err != nil {
			return err
		}
		f.within(fmt.Sprintf("cycle %d: sessions of %s on Ethernet", i, name), func() bool {
			return f.all(rank,
				p2psap.Ethernet)
		})
		if err := f.ib.SetPort(name, true); err != nil {
			return err
		}
		f.within(fmt.Sprintf("cycle %d: all sessions on InfiniBand", i), func() bool {
			for r := range f.nodes {
				if !f.all(r, p2psap.InfiniBand) {
					return false
				}
			}
			return true
		})
	}
	return nil
}

// After an adapter is removed the run continues over Ethernet.
func TestAdapterRemovedInMidRun(t *testing.T) {
	b, err := problems.Lookup("membrane")
	require.NoError(t, err)
	p, err := b.Make([3]int{12, 12, 20})
	require.NoError(t, err)
	f := newFabric(t, []bool{true, true}, func(*ib.Config) {})
	stop, running := make(chan struct{}), make(chan struct{})
	var once sync.Once
	pl := plan{problem: p, peers: 2, scheme: iterate.Synchronous(), node: overNodes(f.nodes), change: func(_ int,
		c *runner.Config) {
		c.Solver.Tolerance = 0
		c.Stop = stop
		c.ProgressEvery = time.Millisecond
		c.Progress = func(p runner.Progress) {
			if p.Sweep > 20 {
				once.Do(func() { close(running) })
			}
		}
	}}
	moved := make(chan error, 1)
	go func() {
		defer close(stop)
		defer close(moved)
		<-running
		if err := f.ib.Remove(names(2)[1]); err != nil {
			moved <- err
			return
		}
		f.within("Ethernet at both ends", func() bool { return f.all(0, p2psap.Ethernet) && f.all(1, p2psap.Ethernet) })
		moved <- nil
	}()
	out := pl.run(t)
	require.NoError(t, <-moved)
	for rank, o := range out {
		require.NoError(t, o.err, "rank %d", rank)
	}
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 0, 0, 0, out[0].result.Iterate)
	require.NoError(t, err)
	sameBits(t, seq.U, assemble(p, out))
}
