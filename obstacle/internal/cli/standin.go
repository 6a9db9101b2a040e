package cli

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarser prepares r on a coarser stand-in, in runs.coarser. It leaves it nil if there is none that makes the
// comparison valid: events, moves and time steps have times of their own, which a shorter run does not scale.
func (a *app) coarser(r *virtualRun, prepare func(standIn int) (*virtualRun, error)) {
	if r.Scale <= 1 || len(r.Model.Events) > 0 || r.Balance || len(r.Joins)+len(r.Leaves) > 0 || r.work.problem.Steps() > 0 {
		return
	}
	p := r.work.problem
	side := coarserStandIn(r.Scale, p.N[:p.Dimension])
	if side == 0 {
		return
	}
	if c, err := prepare(side); err == nil {
		c.pages, c.label = nil, fmt.Sprintf("stand-in %d, ", side)
		r.coarser = c
	}
}

// coarserStandIn returns the stand-in next to twice the given one that divides the full grid; 0: none up to four times.
// relaxed is the number of points along each axis on the given one.
func coarserStandIn(standIn int, relaxed []int) int {
	divides := func(side int) bool {
		return !slices.ContainsFunc(relaxed, func(n int) bool { return n*standIn%side != 0 })
	}
	if divides(2 * standIn) {
		return 2 * standIn
	}
	for side := standIn + (standIn+1)/2; side <= 4*standIn; side++ {
		if divides(side) {
			return side
		}
	}
	return 0
}

// leastStandIn is the least number of points along an axis of a stand-in. On fewer, every point may be in contact from the start.
const leastStandIn = 3

// largestStandIn returns the largest stand-in below one that leaves too few points of a full grid along an axis.
func largestStandIn(full []int, below int) int {
	for side := below - 1; side > 1; side-- {
		if !slices.ContainsFunc(full, func(n int) bool { return n%side != 0 || n/side < leastStandIn }) {
			return side
		}
	}
	return 1
}

// with returns the simulation on another stand-in.
func (s *simulation) with(standIn int) *simulation {
	out := *s
	out.standIn = standIn
	return &out
}

func onCoarser(r *virtualRun) *virtualRun {
	if r == nil {
		return nil
	}
	return r.coarser
}

// withCoarser appends the runs on coarser stand-ins.
func withCoarser(runs []*virtualRun) []*virtualRun {
	for _, r := range slices.Clone(runs) {
		if r.coarser != nil {
			runs = append(runs, r.coarser)
		}
	}
	return runs
}

// growth returns how the time of a run grows with its stand-in.
func (r *virtualRun) growth() report.Growth {
	switch {
	case r.sequential():
		return report.Linear
	case r.work.method.Name == problem.Richardson && !r.work.scheme.Lockstep():
		return report.Aged
	}
	return report.Unknown
}

// against sets the efficiency of a run, on a stand-in that of the full grid.
func (r *virtualRun) against(alone report.Alone, coarse report.Alone) {
	r.figures.Against(alone, r.together())
	if r.Scale <= 1 {
		return
	}
	side, c := 0, r.coarser
	var f *report.Simulated
	if c != nil && c.refused == nil && (r.growth() != report.Aged || r.refreshedAlike(c)) {
		side, f = c.Scale, &c.figures
		f.Against(coarse, c.together())
	}
	r.figures.OnFullGrid(r.growth(), r.Scale, side, f, r.unequal(), r.chance())
}

// sameInterval is how much the mean times between two new faces may differ between stand-ins, in sweeps, as a ratio. Where a
// network is full, they may grow during the run: then the runs on two stand-ins do not read faces of the same age.
const sameInterval = 1.25

// refreshedAlike reports whether the faces on two stand-ins are replaced by newer ones after about as many sweeps.
func (r *virtualRun) refreshedAlike(c *virtualRun) bool {
	if r.result == nil || c.result == nil {
		return false
	}
	a, b := r.result.MeanInterval(), c.result.MeanInterval()
	return max(a, b) <= sameInterval*min(a, b)
}

// unequal returns the excess of the time of a sweep of the slowest machine over that of all machines together.
func (r *virtualRun) unequal() float64 {
	hosts := r.machines()
	sum, least := 0.0, math.Inf(1)
	for i := range hosts {
		sum, least = sum+speed(&hosts[i]), min(least, speed(&hosts[i]))
	}
	return sum/float64(len(hosts))/least - 1
}

// chance returns twice the standard deviation of the time of a run by the number of pauses in it, and of frames that are
// lost by chance on the coarser stand-in, relative to the time.
func (r *virtualRun) chance() float64 { return r.pauses() + r.losses() }

// losses returns the share of losses in chance. What the run takes longer than its machines together is the sum of their
// costs at most, which vary by as much as their mean. Those of several machines may delay the same sweep, and count as one.
func (r *virtualRun) losses() float64 {
	lossy := slices.ContainsFunc(r.Model.Networks, func(n cluster.Network) bool { return n.Loss > 0 }) ||
		slices.ContainsFunc(r.Model.WAN, func(w cluster.WANLink) bool { return w.Loss > 0 })
	if !lossy || r.coarser == nil || !(r.figures.Efficiency < 1) {
		return 0
	}
	delays := max(1, float64(r.coarser.figures.Lost)/float64(len(r.machines())))
	return 2 * (1 - float64(r.figures.Efficiency)) * math.Sqrt(2/delays)
}

// pauses returns the share of pauses in chance.
func (r *virtualRun) pauses() float64 {
	pauses, longest := 0.0, 0.0
	met := float64(r.figures.Met)
	for _, h := range r.machines() {
		pauses += h.Straggle.PerSecond * met
		longest = max(longest, h.Straggle.For.Seconds())
	}
	if !(pauses > 0) || !(met > 0) {
		return 0
	}
	return 2 * longest * math.Sqrt(pauses+1) / met
}

// machines returns the hosts on which the run begins.
func (r *virtualRun) machines() []cluster.Host {
	return r.Model.Hosts[:len(r.Model.Hosts)-len(r.Joins)]
}

// speed returns how many points per second a host relaxes.
func speed(h *cluster.Host) float64 {
	return h.Relaxation / max(h.Slow, 1) / (1 + h.Straggle.PerSecond*h.Straggle.For.Seconds())
}

// fastest returns the fastest host, the first of equals.
func fastest(hosts []cluster.Host) *cluster.Host {
	best := &hosts[0]
	for i := range hosts {
		if h := &hosts[i]; speed(h) > speed(best) {
			best = h
		}
	}
	return best
}

// together returns the speed of all machines as a multiple of that of the reference. Hosts that share a machine have its
// cores together.
func (r *virtualRun) together() float64 {
	hosts, sum := r.machines(), 0.0
	sharing := map[int]int{}
	for i := range hosts {
		sharing[hosts[i].Machine]++
	}
	for i := range hosts {
		h, part := &hosts[i], 1.0
		if h.Machine != 0 {
			part = min(1, float64(max(h.Cores, 1))/float64(sharing[h.Machine]))
		}
		sum += part * speed(h)
	}
	return sum / speed(r.referenceHost())
}

// referenceHost returns the host of t(1).
func (r *virtualRun) referenceHost() *cluster.Host {
	if r.alone != nil {
		return r.alone
	}
	return fastest(r.machines())
}

// referenceOf returns the fastest host of the largest cluster that the model has, of t(1); nil: it has none of them.
func referenceOf(f *clusterfile.File, machines []int) *cluster.Host {
	for _, m := range slices.Backward(slices.Sorted(slices.Values(machines))) {
		if model, err := f.Model(m); err == nil {
			return fastest(model.Hosts)
		}
	}
	return nil
}
