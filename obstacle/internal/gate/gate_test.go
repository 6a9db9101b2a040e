package gate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// script is a peer whose next operation and progress the test sets.
type script struct {
	problem.Peer
	op  iterate.Op
	at  iterate.Progress
	now time.Duration // of the newest call
}

func (s *script) Next(now time.Duration) iterate.Op {
	s.now = now
	return s.op
}
func (s *script) Solution(dst []float64)                   { copy(dst, []float64{1, 2, 3}) }
func (s *script) Progress() iterate.Progress               { return s.at }
func (s *script) Stop(now time.Duration, _ iterate.Reason) { s.now = now }

// scripts is a method whose peers are the script itself.
type scripts struct {
	problem.Method
	s      *script
	config problem.Config
}

func (*scripts) Name() string { return "scripts" }
func (m *scripts) New(c problem.Config) (problem.Peer, error) {
	m.config = c
	return m.s, nil
}

// peerAt returns a peer that relaxes, with a gate.
func peerAt(t *testing.T, g *Gate, c problem.Config) (problem.Peer, *scripts) {
	t.Helper()
	g.Dir = t.TempDir()
	name, text, _ := strings.Cut(g.Environment(), "=")
	t.Setenv(name, text)
	all, m := &solver.Catalog{}, &scripts{s: &script{op: iterate.Op{Kind: iterate.OpRelax}}}
	require.NoError(t, all.Add(m))
	gated, err := Methods(all)
	require.NoError(t, err)
	c.Method.Name = "scripts"
	p, err := gated.New(c)
	require.NoError(t, err)
	return p, m
}

// A peer relaxes up to the gate, waits there with a bound, and relaxes again once it is open.
func TestPeerWaitsUntilTheGateOpens(t *testing.T) {
	g := &Gate{Step: 2, Sweep: 5}
	p, m := peerAt(t, g, problem.Config{})
	next := func() iterate.OpKind { return p.Next(time.Second).Kind }
	for _, at := range []iterate.Progress{{Step: 1, Sweep: 9}, {Step: 2, Sweep: 4}} {
		m.s.at = at
		require.Equal(t, iterate.OpRelax, next())
	}
	m.s.at = iterate.Progress{Step: 2, Sweep: 5}
	require.Equal(t, iterate.Op{Kind: iterate.OpWait, Until: time.Second + poll}, p.Next(time.Second))
	m.s.op.Kind = iterate.OpAgree
	require.Equal(t, iterate.OpAgree, next(), "a peer at the gate sends messages")
	m.s.op.Kind = iterate.OpRelax
	require.NoError(t, g.Pass(2))
	require.Equal(t, iterate.OpRelax, next())
	m.s.at.Step = 3
	require.Equal(t, iterate.OpWait, next(), "the gate is in the next time step")
	require.NoError(t, g.Open())
	require.Equal(t, iterate.OpRelax, next())
}

// A gate with Every lets one sweep pass at a time, of all its parts.
func TestSweepsPassAtTimes(t *testing.T) {
	p, m := peerAt(t, &Gate{Sweep: 1, Every: time.Second}, problem.Config{})
	for _, c := range []struct {
		sweep iterate.Iteration
		now   time.Duration
		want  iterate.OpKind
	}{
		{0, 0, iterate.OpRelax}, {1, 1, iterate.OpRelax}, {1, 2, iterate.OpRelax}, {2, time.Second, iterate.OpWait},
		{2, time.Second + 1, iterate.OpRelax}, {2, time.Second + 2, iterate.OpRelax}, {3, time.Second + 3, iterate.OpWait},
	} {
		m.s.at.Sweep = c.sweep
		require.Equal(t, c.want, p.Next(c.now).Kind, "%+v", c)
	}
}

// A gate in the answer does not hold relaxations.
func TestGateInTheAnswer(t *testing.T) {
	g := &Gate{Answer: true}
	p, _ := peerAt(t, g, problem.Config{})
	require.Equal(t, iterate.OpRelax, p.Next(0).Kind)
	synctest.Test(t, func(t *testing.T) {
		u, done := make([]float64, 3), make(chan struct{})
		go func() {
			p.Solution(u)
			close(done)
		}()
		time.Sleep(10 * poll)
		synctest.Wait()
		require.Equal(t, 1.0, u[0], "the first half is written") // the rest belongs to Solution, which writes it later
		select {
		case <-done:
			require.Fail(t, "the answer is complete at a closed gate")
		default:
		}
		require.NoError(t, g.Open())
		<-done
		require.Equal(t, []float64{1, 2, 3}, u)
	})
}

// A run that is to end does not wait.
func TestStopOpensTheGate(t *testing.T) {
	p, m := peerAt(t, &Gate{}, problem.Config{})
	require.Equal(t, iterate.OpWait, p.Next(0).Kind)
	p.Stop(time.Second, iterate.Interrupted)
	require.Equal(t, time.Second, m.s.now)
	require.Equal(t, iterate.OpRelax, p.Next(0).Kind)
}

// The clock of a peer that keeps iterates is set forward after its first sweep, so that it keeps one then.
func TestGateBehindAKeptIterate(t *testing.T) {
	p, m := peerAt(t, &Gate{Kept: true}, problem.Config{KeepEvery: time.Second})
	require.Equal(t, leap, m.config.KeepEvery)
	require.Equal(t, iterate.OpRelax, p.Next(0).Kind)
	require.Zero(t, m.s.now)
	m.s.at.Sweep = 1
	m.s.op = iterate.Op{Kind: iterate.OpWait, Until: leap + 3}
	require.Equal(t, iterate.Op{Kind: iterate.OpWait, Until: 3}, p.Next(2))
	require.Equal(t, leap+2, m.s.now)
	for label, want := range []iterate.OpKind{iterate.OpRelax, iterate.OpWait} {
		m.s.op = iterate.Op{Kind: iterate.OpKept, Label: uint64(label)}
		require.Equal(t, iterate.OpKept, p.Next(2).Kind)
		m.s.op = iterate.Op{Kind: iterate.OpRelax}
		require.Equal(t, want, p.Next(2).Kind, "after iterate %d was kept", label)
	}
}

// Without the variable the catalog is that of the program, and a damaged one is refused.
func TestGateOfTheEnvironment(t *testing.T) {
	all := solver.Methods()
	same, err := Methods(all)
	require.NoError(t, err)
	require.Same(t, all, same)
	t.Setenv(Variable, "{")
	_, err = Methods(all)
	require.ErrorContains(t, err, Variable)
}
