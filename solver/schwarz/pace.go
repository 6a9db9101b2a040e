package schwarz

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// workPace decides how many cycles of the local method a peer does between two
// exchanges. Where the number was not given it follows from measurement: as many as an
// exchange costs, so that neither more than doubles the other. What a relaxation takes beside its
// cycles is that cost: in lockstep the network's latency and, for peers that are ahead,
// their head start, for all of them the residual, the coarse correction and the
// assembling. Where nobody waits and several relaxations pass between two news, to solve
// again with the old values of the neighbours brings nothing new, and the work is what fits
// between them. (The interval of news alone does not tell: peers that do more cycles send
// less often, which would have them do more still.)
type workPace struct {
	w     *peer
	fixed int
	least float64
	most  float64
	now   time.Duration

	asking  bool // a cycle was asked for
	askedAt time.Duration
	done    int
	cycle   float64 // seconds of one
	began   time.Duration
	did     int // cycles of the relaxation that began then
	newsAt  time.Duration
	quiet   int     // relaxations since the last news
	gap     float64 // cycles that an exchange costs
	between float64 // cycles between two news that are further apart than relaxations
	chosen  float64
}

// Bounds of the choice, in cycles; point methods at most as many as values take to cross
// the region, times mostCrossings. The first relaxation does firstWork times the least.
const (
	mostMultigrid = 4
	mostCrossings = 2
	firstWork     = 2
	smoothing     = 0.25 // weight of a new measurement
	mostFall      = 0.5  // from one relaxation to the next
	mostRise      = 4
)

func (p *workPace) init(w *peer) {
	p.w, p.fixed = w, w.config.Method.Work
	p.least, p.most = 1, mostMultigrid
	longest := 1
	for a := range 3 {
		longest = max(longest, w.layout.N[a])
	}
	switch localName(&w.config.Method) {
	case problem.SOR:
		p.least, p.most = 4, float64(mostCrossings*longest)
	case problem.Richardson:
		p.least, p.most = 4, float64(mostCrossings*longest*longest)
	}
	p.most = max(p.least, p.most)
	p.chosen = p.first()
}

// first is the work of the first relaxation.
func (p *workPace) first() float64 { return min(firstWork*p.least, p.most) }

// omega is the factor of the local SOR: the best for a membrane as long as the region, or
// as the number of sweeps, since what a factor near 2 promises takes about that many
// sweeps, and before it the error grows. Without symmetry nothing is promised.
func (p *workPace) omega() float64 {
	m := &p.w.config.Method
	switch {
	case m.Omega != 0:
		return m.Omega
	case !p.w.block.Problem.Symmetric():
		return 1
	}
	longest := 1
	for a := range 3 {
		longest = max(longest, p.w.layout.N[a])
	}
	sweeps := p.fixed
	if sweeps == 0 {
		sweeps = int(p.first())
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
		p.measure(news)
		wanted := p.gap
		if !p.w.config.Scheme.Lockstep() {
			wanted = max(wanted, p.between)
		}
		p.chosen = max(p.least, mostFall*p.chosen, min(wanted, mostRise*p.chosen, p.most))
	}
	p.began, p.did = p.now, int(math.Round(p.chosen))
	return p.did
}

// measure takes in the relaxation that has ended.
func (p *workPace) measure(news bool) {
	p.gap = mixed(p.gap, max(0, (p.now-p.began).Seconds()/p.cycle-float64(p.did)))
	if p.quiet++; !news || p.w.config.Scheme.Lockstep() {
		return
	}
	interval := 0.0
	if p.quiet > 1 {
		interval = (p.now - p.newsAt).Seconds() / p.cycle
	}
	p.between += smoothing * (interval - p.between)
	p.newsAt, p.quiet = p.now, 0
}
