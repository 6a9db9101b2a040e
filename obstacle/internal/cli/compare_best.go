package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// schemesOf are the schemes of a method that compare runs beside those asked for.
type schemesOf struct {
	method  string
	schemes []string
}

// bestMethods returns the methods that compare runs beside the given ones: what solves a problem fastest is seldom the
// method with which schemes are studied. The first is also that of one peer.
func bestMethods(besides []string) []schemesOf {
	if slices.Contains(besides, problem.FixedPoint) {
		return nil // an iteration has no other method
	}
	all := []schemesOf{
		{problem.Multigrid, []string{"sync"}}, {problem.Schwarz, []string{"sync", "async"}},
		{problem.FAS, []string{"sync", "async"}},
	}
	return slices.DeleteFunc(all, func(s schemesOf) bool { return slices.Contains(besides, s.method) })
}

// bestOn prepares the runs of the best methods on the largest number of machines, multigrid also on one. Methods
// that the flags exclude are left out.
func (a *app) bestOn(q *request, s *simulation, f *clusterfile.File, ref string, all selection) (
	out []*methodComparison,
) {
	for _, b := range bestMethods(all.methods) {
		only := selection{methods: []string{b.method}, schemes: b.schemes, peers: []int{slices.Max(all.peers)}}
		m, err := a.compareMethod(q, s, f, ref, b.method, only)
		if err != nil {
			continue
		}
		for _, r := range m.runs() {
			r.label, r.pages = b.method+", "+r.label, nil
		}
		out = append(out, m)
	}
	return out
}

// simulateBest simulates further methods, none for longer than the slowest of the solved runs, and returns what they add to
// the candidates.
func (a *app) simulateBest(ctx context.Context, methods []*methodComparison, solved []report.Candidate) (
	out []report.Candidate,
) {
	var runs []*virtualRun
	for _, m := range methods {
		for _, r := range m.runs() {
			r.Until = atMost(r.Until, solved)
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 || slowest(solved) == 0 || a.simulateAll(ctx, runs) != nil {
		return nil
	}
	for _, m := range methods {
		more := m.candidates(m.summarize(&report.Subject{}))
		if m.method != problem.Multigrid {
			more = more[:len(more)-1] // on one machine it is multigrid
		}
		out = append(out, more...)
	}
	return out
}

// slowest returns the longest known time; 0: there is none.
func slowest(all []report.Candidate) (longest time.Duration) {
	for _, c := range all {
		if c.Seconds.Known() {
			longest = max(longest, time.Duration(float64(c.Seconds)*float64(time.Second)))
		}
	}
	return longest
}

// atMost returns the shorter of a bound, 0 if there is none, and the time of the slowest run.
func atMost(most time.Duration, solved []report.Candidate) time.Duration {
	if longest := slowest(solved); most == 0 || longest < most {
		return longest
	}
	return most
}

// candidates returns the solved runs of a method, and that of one machine, with their times on the full grid: there a
// point method needs more sweeps than on a stand-in, by the square of the ratio of the intervals, and SOR by the ratio.
func (m *methodComparison) candidates(rows []report.SimulatedRow, one report.Reference) (out []report.Candidate) {
	single := m.one
	for i := range rows {
		r, row := m.rows[i], &rows[i]
		if r.refused != nil {
			continue
		}
		if single == nil && r.sequential() {
			single = r
		}
		c := report.Candidate{
			Method: m.method, Scheme: row.Scheme, Peers: row.Machines, Lockstep: r.work.scheme.Lockstep(),
			Seconds: row.Comparable * r.moreSweeps(), Uncorrected: r.Scale > 1 && r.growth() == report.Unknown,
		}
		switch low, high := row.ComparableLow*r.moreSweeps(), row.ComparableHigh*r.moreSweeps(); {
		case r.Scale <= 1:
			c.Exactly()
		case !low.Known(): // there is no estimate
			c.Low, c.High = low, high
		case c.Uncorrected:
			c.OnStandIns(0.97*c.Seconds, 1.03*c.Seconds, r.coarser.figures.Met*r.coarser.moreSweeps())
		default:
			c.OnStandIns(low, high, r.coarser.figures.Met*r.coarser.moreSweeps())
		}
		out = append(out, c)
	}
	c := report.Candidate{Method: m.method, Scheme: "sync", Peers: 1, Seconds: one.Alone, Lockstep: true}
	c.Exactly()
	if single != nil && single.Scale > 1 {
		c.Seconds *= single.moreSweeps()
		coarser := nullable.NaN()
		if single.coarser != nil {
			coarser = m.coarse * single.coarser.moreSweeps()
		}
		c.Uncorrected = single.work.method.Name != problem.Richardson
		c.OnStandIns(0.97*c.Seconds, 1.03*c.Seconds, coarser)
	}
	return append(out, c)
}

// moreSweeps returns how many times its sweeps the method of a run needs on the full grid.
func (r *virtualRun) moreSweeps() nullable.Number {
	n := slices.Max(r.work.problem.N[:])
	return nullable.Number(moreSweeps(r.work.method.Name, float64(n*max(r.Scale, 1)+1)/float64(n+1)))
}

// moreSweeps returns how many times the sweeps a method needs on a grid whose intervals are finer by a ratio.
func moreSweeps(method string, finer float64) float64 {
	switch method {
	case problem.Richardson:
		return finer * finer
	case problem.SOR:
		return finer
	}
	return 1
}

// runBest runs the best methods once on the largest number of peers, and multigrid on one, none for longer than the slowest
// of the rows. Runs that fail are left out.
func (a *app) runBest(ctx context.Context, q *request, ref string, all selection, rows []row) *report.Best {
	var out []report.Candidate
	for i := range rows {
		r := &rows[i]
		if scheme, err := a.catalog.Scheme(r.Scheme, nil); r.err == nil && err == nil {
			c := report.Candidate{
				Method: r.Method, Scheme: r.Scheme, Peers: r.Peers, Seconds: r.Seconds, Lockstep: scheme.Lockstep(),
			}
			c.Exactly()
			out = append(out, c)
		}
	}
	if slowest(out) == 0 {
		return nil
	}
	of := *q
	of.MaxTime = atMost(q.MaxTime, out)
	for _, b := range bestMethods(all.methods) {
		of.method.Name = b.method
		cases, err := of.cases(ref, b.schemes, []int{slices.Max(all.peers)})
		if err != nil {
			continue
		}
		if b.method != problem.Multigrid {
			cases = cases[1:] // on one peer it is multigrid
		}
		for i := range cases {
			t := &cases[i]
			t.request.label, t.request.pages = fmt.Sprintf("%s, %s, %s", t.row.Scheme, t.row.Method,
				counted(t.row.Peers, "peer")), nil
			if t.row.err != nil || ctx.Err() != nil || a.once(ctx, t) != nil {
				continue
			}
			c := report.Candidate{
				Method: b.method, Scheme: t.row.Scheme, Peers: t.row.Peers, Lockstep: t.work.scheme.Lockstep(),
				Seconds: nullable.Number(t.row.seconds[0]),
			}
			c.Exactly()
			out = append(out, c)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return report.BestOf(out, "")
}
