//go:build linux

package obstacle_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// lieVariable is the environment variable that makes the peers of a process send a value in place of a true one.
const lieVariable = "OBSTACLE_TEST_LIE"

// lies returns the methods with the lie of the environment.
func lies(all *solver.Catalog) *solver.Catalog {
	var l liar
	if n, _ := fmt.Sscan(os.Getenv(lieVariable), &l.in, &l.value); n < 2 {
		return all
	}
	out := &solver.Catalog{}
	for _, name := range all.Names() {
		m, err := all.Lookup(name)
		if err == nil {
			err = out.Add(liarsMethod{m, l})
		}
		if err != nil {
			panic(err)
		}
	}
	return out
}

type liarsMethod struct {
	problem.Method
	liar
}

func (m liarsMethod) New(c problem.Config) (problem.Peer, error) {
	p, err := m.Method.New(c)
	l := m.liar
	l.Peer = p
	return &l, err
}

// liar is a peer that lies when it has made some sweeps.
type liar struct {
	problem.Peer
	in    string
	value float64
}

func (l *liar) lies(in string) bool { return l.in == in && l.Progress().Sweep > 20 }

func (l *liar) write(dst []byte) { binary.LittleEndian.PutUint64(dst, math.Float64bits(l.value)) }

// Next implements iterate.Peer.
func (l *liar) Next(now time.Duration) iterate.Op {
	op := l.Peer.Next(now)
	if op.Kind == iterate.OpSend && op.Tag/2 == 0 && l.lies("short") {
		op.Bytes -= 8
	}
	if op.Kind != iterate.OpAgree {
		return op
	}
	m := iterate.Message{
		Kind: iterate.MessageKind(op.Message[1]), Step: int(binary.LittleEndian.Uint32(op.Message[4:])),
		Number: binary.LittleEndian.Uint64(op.Message[8:]), A: l.value,
	}
	switch {
	case m.Kind == iterate.MsgResidual && m.Number > 0 && l.lies("residual"):
		m.Squares.Add(l.value)
		op.Message = m.Encode()
	case m.Kind == iterate.MsgEstimate && l.lies("estimate"):
		op.Message = m.Encode()
	case m.Kind == iterate.MsgCaptured && m.Number > 0 && l.lies("captured"):
		l.write(op.Message[len(op.Message)-8:])
	}
	return op
}

// Pack implements iterate.Peer.
func (l *liar) Pack(op iterate.Op, dst []byte) {
	if l.in == "short" {
		whole := make([]byte, len(dst)+8)
		l.Peer.Pack(op, whole)
		copy(dst, whole)
		return
	}
	l.Peer.Pack(op, dst)
	switch kind := op.Tag / 2; {
	case kind == 0 && l.lies("halo"):
		l.write(dst[len(dst)-8:])
	case kind == 1 && l.lies("length"): // of sums over the tree
		dst[2]++
	case kind == 1 && len(dst) > 5 && l.lies("sums"):
		dst[5] |= 1 // the flag of a kernel.Sum that is not a number
	}
}

// Values implements problem.Peer.
func (l *liar) Values(dst []float64, part problem.Box) {
	l.Peer.Values(dst, part)
	if l.lies("values") {
		dst[0] = l.value
	}
}

// Solution implements iterate.Peer.
func (l *liar) Solution(dst []float64) {
	l.Peer.Solution(dst)
	if l.lies("answer") {
		dst[len(dst)-1] = l.value
	}
}

// A process that sends what no peer has is lost, cannot join again, and the run goes on to the solution without it.
func TestInsiderCostsItself(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range some([]struct {
		in    string
		value float64
		args  []string
	}{
		{"residual", nan, []string{"--scheme", "sync"}},
		{"captured", nan, []string{"--scheme", "async"}},
		{"answer", nan, []string{"--scheme", "sync"}},
		{"values", nan, []string{"--scheme", "sync", "--recover", "exact"}},
		{"residual", -1, []string{"--scheme", "async"}},
		{"halo", nan, []string{"--method", "sor"}},
		{"halo", math.Inf(-1), []string{"--scheme", "async"}},
		{"estimate", nan, []string{"--scheme", "async"}},
		{"estimate", -1, []string{"--scheme", "async"}},
		{"answer", math.Inf(1), []string{"--method", "sor"}},
		{"sums", nan, []string{"--method", "sor"}},
		{"answer", 1e300, []string{"--scheme", "async"}},
		{"values", -1e300, []string{"--scheme", "sync", "--recover", "exact"}},
		{"length", 0, []string{"--method", "sor"}},
		{"short", 0, []string{"--method", "sor"}},
		{"halo", 1e300, []string{"--scheme", "sync"}},
		{"halo", 1e300, []string{"--method", "sor"}},
	}) {
		t.Run(fmt.Sprint(c.in, " ", c.value, " ", c.args), func(t *testing.T) {
			t.Parallel()
			closeGate(t, gate.Gate{Sweep: 25, Kept: c.in == "values"})
			r, address, secret := waiting(t, append([]string{"solve", "membrane", "--n", "20", "--peers", "3"}, c.args...)...)
			var liar *running
			for seat := range 3 {
				env := []string(nil)
				if seat == 1 {
					env = []string{fmt.Sprintf("%s=%s %v", lieVariable, c.in, c.value)}
				}
				p := startAs(t, func(f func() error) error { return f() }, env, nil, "peer", "--rendezvous", address, "--secret-file", secret,
					"--listen", "127.0.0.1", "--seat", fmt.Sprint(seat))
				if seat == 1 {
					liar = p
				}
			}
			r.said(`"relaxing"`)
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Len(t, s.Losses, 1)
			require.Equal(t, 1, s.Losses[0].Rank)
			require.Regexp(t, "was refused.*(it sent values that no peer of this run has|wrong message length|bytes of ghosts; want)", s.Losses[0].Why)
			require.NotEqual(t, 0, liar.wait(patience))
		})
	}
}
