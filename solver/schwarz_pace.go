package solver

import (
	"math"
	"time"
)

// workPace decides how many cycles of the local method a peer does between two
// exchanges. Where the number was not given it follows from measurement: what an
// exchange costs, in cycles. In lockstep that is the time lost between two solves, for
// the slowest peer the network's latency, for the others their head start as well; if a
// peer does not wait, the interval in which news come, since to solve again with the old
// values of the neighbours brings nothing new.
type workPace struct {
	w     *schwarz
	fixed int
	least float64
	most  float64
	now   time.Duration

	asking  bool // a cycle was asked for
	askedAt time.Duration
	done    int
	cycle   float64 // seconds of one
	ended   time.Duration
	newsAt  time.Duration
	gap     float64 // seconds that an exchange costs
	chosen  float64
}

// Bounds of the choice, in cycles; point methods at most as many as values take to cross
// the region, times mostCrossings.
const (
	mostMultigrid = 4
	mostCrossings = 2
	smoothing     = 0.25 // weight of a new measurement
)

func (p *workPace) init(w *schwarz) {
	p.w, p.fixed = w, w.config.Method.Work
	p.least, p.most = 1, mostMultigrid
	longest := 1
	for a := range 3 {
		longest = max(longest, w.layout.N[a])
	}
	switch w.config.Method.localName() {
	case SOR:
		p.least, p.most = 2, float64(mostCrossings*longest)
	case Richardson:
		p.least, p.most = 4, float64(mostCrossings*longest*longest)
	}
	p.chosen = p.least
}

// omega is the factor of the local SOR: the best for a membrane as long as the region, or
// as the number of sweeps, since what a factor near 2 promises takes about that many
// sweeps, and before it the error grows. Without symmetry nothing is promised.
func (p *workPace) omega() float64 {
	m := &p.w.config.Method
	switch {
	case m.Omega != 0:
		return m.Omega
	case !p.w.block.problem.Symmetric():
		return 1
	}
	longest := 1
	for a := range 3 {
		longest = max(longest, p.w.layout.N[a])
	}
	sweeps := p.fixed
	if sweeps == 0 {
		sweeps = int(p.least)
	}
	return bestOmega(min(longest, sweeps))
}

// asked is told every time that the shell asks what to do.
func (p *workPace) asked(now time.Duration) {
	p.now = max(p.now, now)
	pass := &p.w.pass
	if p.asking && (pass.stage != partSolve || pass.done != p.done) {
		p.cycle = mixed(p.cycle, (p.now - p.askedAt).Seconds())
		p.asking = false
		if pass.stage != partSolve {
			p.ended = p.now
		}
	}
	if pass.stage == partSolve && !p.asking {
		p.asking, p.askedAt, p.done = true, p.now, pass.done
	}
}

// mixed is a running mean; the first measurement counts whole.
func mixed(old, sample float64) float64 {
	if old == 0 {
		return sample
	}
	return old + smoothing*(sample-old)
}

// cycles is how many the relaxation that begins now does. news: something came since the
// last one.
func (p *workPace) cycles(news bool) int {
	if p.fixed > 0 {
		return p.fixed
	}
	if p.cycle > 0 {
		if inLockstep(p.w.config.Scheme) {
			p.gap = mixed(p.gap, (p.now - p.ended).Seconds())
		} else if news {
			p.gap = mixed(p.gap, (p.now - p.newsAt).Seconds())
			p.newsAt = p.now
		}
		wanted := p.gap / p.cycle
		p.chosen = math.Max(p.least, math.Min(p.most, math.Max(p.chosen/2, math.Min(wanted, 2*p.chosen))))
	}
	return int(math.Round(p.chosen))
}
