package main

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

func TestCutsOfThePublishedRuns(t *testing.T) {
	for row, want := range [][2][3]int{
		{{2, 2, 1}, {1, 2, 2}}, {{4, 2, 1}, {2, 2, 2}}, {{4, 4, 1}, {2, 2, 4}},
		{{8, 4, 1}, {2, 4, 4}}, {{8, 8, 1}, {4, 4, 4}},
	} {
		m := published.Machines[row]
		require.Equal(t, want, [2][3]int{pillars(m), cubes(m)}, "%d machines", m)
	}
}

// A synchronous cell in closed form: each of four pillars sends and receives two faces of 128 × 256
// values, whose bytes the protocol handles one after the other at both ends. Nothing overlaps, so
// the result depends neither on the speed of relaxation nor on the proxy grid.
func TestExchangeOfFourMachines(t *testing.T) {
	r, err := newReplay(pillars)
	require.NoError(t, err)
	c := published.Cell{Column: published.SyncIB, Row: 0}
	ctx := context.Background()
	exchanges := map[float64]float64{}
	for _, sweeps := range []float64{1e5, 2e5} {
		exchanges[sweeps], err = r.exchange(ctx, c, calibration{sweeps: sweeps, byte: 2})
		require.NoError(t, err)
	}
	bytes := 8 * float64(published.Exchanged(pillars(4)))
	require.InEpsilon(t, 2*2e-9*bytes, exchanges[1e5], 0.03)
	require.InEpsilon(t, exchanges[1e5], exchanges[2e5], 1e-3)
	finer, err := r.simulate(ctx, c, calibration{sweeps: 1e5, byte: 2}, middleSide, cellSweeps)
	require.NoError(t, err)
	require.InEpsilon(t, share(c)/1e5+exchanges[1e5], finer.Steady.Seconds(), 1e-4)
}

func TestEquivalentSweeps(t *testing.T) {
	p, err := measure.Membrane(16)
	require.NoError(t, err)
	s, err := richardson.SolveSequential(p, problem.Jacobi, measure.Unreachable, 1, 1, 40)
	require.NoError(t, err)
	e, err := verify.Evaluate(p, s.U, nil)
	require.NoError(t, err)
	n, err := equivalent(16, e.RelativeResidual)
	require.NoError(t, err)
	require.InDelta(t, 40, n, 1e-3)
	between, err := equivalent(16, e.RelativeResidual*1.001)
	require.NoError(t, err)
	require.True(t, between < n && between > 39, "%v", between)
	for _, bad := range []float64{0, -1, 1, math.NaN()} {
		_, err := equivalent(16, bad)
		require.Error(t, err)
	}
}

// New values cost no sweeps, and a machine's time is its share of the sequential run.
func TestAsynchronousCellOnQuickNetwork(t *testing.T) {
	r, err := newReplay(pillars)
	require.NoError(t, err)
	c := published.Cell{Column: published.AsyncIB, Row: 0}
	r.from, r.to = 20, 40
	s, err := r.stale(context.Background(), c, calibration{sweeps: 1e4, byte: 0.1}, coarseSide)
	require.NoError(t, err)
	require.InEpsilon(t, share(c)/1e4, s.sweep, 0.01)
	require.InDelta(t, 0, s.more, 0.02)
	require.Less(t, s.age, 0.1)
}

func TestMinimizeFindsTheRootAndItsErrors(t *testing.T) {
	x, err := minimize(context.Background(), 1, func(x float64) (float64, error) { return math.Log(x / 3.7), nil })
	require.NoError(t, err)
	require.InEpsilon(t, 3.7, x, 1e-2)
	broken := errors.New("broken")
	calls := 0
	_, err = minimize(context.Background(), 1, func(float64) (float64, error) { calls++; return 0, broken })
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, calls)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = minimize(ctx, 1, func(x float64) (float64, error) { return x, nil })
	require.ErrorIs(t, err, context.Canceled)
}

// constructed is a prediction in which every cell is 2 % too slow and asynchronous ones lack a factor.
func constructed() *prediction {
	p := &prediction{k: calibration{sweeps: 1e5, byte: 2}}
	m := published.Measured()
	for _, c := range published.Cells() {
		p.table[c.Column][c.Row] = 1.02 * m.At(c)
		if c.Column.Async() {
			p.table[c.Column][c.Row] /= 1.2
		}
	}
	return p
}

func TestTablesOfThePrediction(t *testing.T) {
	p := constructed()
	require.Contains(t, p.markdown(),
		"| 64 | 247 | 252 | fitted | 448 | 457 | fitted | 180 | 184 | +2.0 % | 192 | 196 | +2.0 % |\n")
	l := modelTable(p.models(p))
	require.Contains(t, l, "3-D boxes | sync Eth | +11.1, -0.3, +6.8, +5.0, fitted | 11.1 |\n")
	require.Contains(t, l, "relax planes in turn | async Eth | +2.0, +2.0, +2.0, +2.0, +2.0 | 2.0 |\n")
	require.Contains(t, l, "| async IB | -15.0, -15.0, -15.0, -15.0, -15.0 | 15.0 |\n")

	r, err := newReplay(pillars)
	require.NoError(t, err)
	v, err := published.Evaluate(p.whole(), fittedCells()...)
	require.NoError(t, err)
	require.InDelta(t, 2, v.Worst, 1e-9)
	low, mean, high := p.missing()
	require.InDelta(t, 1.2/1.02, mean, 1e-9)
	require.InDelta(t, low, high, 1e-9)
	lines, err := p.results(r, v)
	require.NoError(t, err)
	require.Len(t, lines, 27)
	require.Equal(t, "sync IB, 4 machines", lines[0].Name)
	require.InDelta(t, 1.02, lines[0].Peers[0].Ratio, 1e-9)
	require.True(t, *lines[0].Met)
	p.table[published.SyncIB][0] *= 1.06
	lines, err = p.results(r, v)
	require.NoError(t, err)
	require.False(t, *lines[0].Met, "8.1 %% is more than 8")
}

func TestFigure5IsDrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figure5.svg")
	require.NoError(t, figure5(path, constructed().whole()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for c := range published.Columns {
		require.Contains(t, string(text), c.Curve())
	}
	whole := constructed().whole()
	require.InEpsilon(t, published.Sequential/(64*1.02*247), curve(&whole, published.SyncIB)[4].Y, 1e-12)
}

// Planes relaxed in turn take 5/6 of the sweeps. The finer grid is closer to that ratio.
func TestPlanesInTurn(t *testing.T) {
	off := 1.0
	for _, side := range []int{8, 16} {
		p, err := measure.Membrane(side)
		require.NoError(t, err)
		jacobi, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 1, 1, 0)
		require.NoError(t, err)
		turn, err := richardson.SolveSequential(p, problem.InTurn, 1e-6, 1, 1, 0)
		require.NoError(t, err)
		ratio := float64(jacobi.Sweeps) / float64(turn.Sweeps)
		require.Less(t, math.Abs(ratio-inTurn), off)
		off = math.Abs(ratio - inTurn)
	}
	require.Less(t, off, 0.01)
}

var long = flag.Bool("long", false, "also run the experiment of the published table, which takes minutes")

// docs/published.md has the tables that the experiment prints, and the columns have the measured order.
func TestPublishedTablesAreThoseOfTheDocument(t *testing.T) {
	if !*long {
		t.Skip("takes minutes: -long")
	}
	ctx := context.Background()
	boxes, err := boxesInstead(ctx)
	require.NoError(t, err)
	r, err := newReplay(pillars)
	require.NoError(t, err)
	k, err := r.fit(ctx)
	require.NoError(t, err)
	p, err := r.predict(ctx, k, published.Cells(), func(published.Cell, float64) {})
	require.NoError(t, err)
	v, err := published.Evaluate(p.whole(), fittedCells()...)
	require.NoError(t, err)
	require.Empty(t, v.Wrong)
	text, err := os.ReadFile(filepath.Join("..", "docs", "published.md"))
	require.NoError(t, err)
	for name, table := range map[string]string{
		"table": p.markdown(), "models": modelTable(p.models(boxes)), "staleness": p.staleTable(),
	} {
		_, after, _ := strings.Cut(string(text), "<!-- "+name+": begin -->\n")
		documented, _, _ := strings.Cut(after, "<!-- ")
		require.Equal(t, documented, table, "go run ./experiments -only published writes it again")
	}
}
