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
type cycleChoice struct {
	w         *peer
	fixed     int
	minCycles float64
	maxCycles float64
	now       time.Duration

	timing          bool // a cycle was asked for
	timedFrom       time.Duration
	done            int
	secondsPerCycle float64 // seconds of one
	beganAt         time.Duration
	cyclesDone      int // cycles of the relaxation that began then
	newValuesAt     time.Duration
	sweepsSinceNews int     // relaxations since the last news
	exchangeCycles  float64 // cycles that an exchange costs
	newsInterval    float64 // cycles between two news that are further apart than relaxations
	chosen          float64
}

// Bounds of the choice, in cycles; point methods at most as many as values take to cross
// the region, times mostCrossings. The first relaxation does firstWork times the least.
const (
	maxMultigridCycles = 4
	maxCrossings       = 2
	firstFactor        = 2
	smoothing          = 0.25 // weight of a new measurement
	maxDecrease        = 0.5  // from one relaxation to the next
	maxIncrease        = 4
)

func (p *cycleChoice) init(w *peer) {
	p.w, p.fixed = w, w.config.Method.Work
	p.minCycles, p.maxCycles = 1, maxMultigridCycles
	longest := 1
	for a := range 3 {
		longest = max(longest, w.layout.N[a])
	}
	switch localName(&w.config.Method) {
	case problem.SOR:
		p.minCycles, p.maxCycles = 4, float64(maxCrossings*longest)
	case problem.Richardson:
		p.minCycles, p.maxCycles = 4, float64(maxCrossings*longest*longest)
	}
	p.maxCycles = max(p.minCycles, p.maxCycles)
	p.chosen = p.first()
}

// first is the work of the first relaxation.
func (p *cycleChoice) first() float64 { return min(firstFactor*p.minCycles, p.maxCycles) }

// omega is the factor of the local SOR: the best for a membrane as long as the region, or
// as the number of sweeps, since what a factor near 2 promises takes about that many
// sweeps, and before it the error grows. Without symmetry nothing is promised.
func (p *cycleChoice) omega() float64 {
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
func (p *cycleChoice) observe(now time.Duration) {
	p.now = max(p.now, now)
	pass := &p.w.relaxation
	if p.timing && (pass.stage != stageSolve || pass.done != p.done) {
		p.secondsPerCycle = runningMean(p.secondsPerCycle, (p.now - p.timedFrom).Seconds())
		p.timing = false
	}
	if pass.stage == stageSolve && !p.timing {
		p.timing, p.timedFrom, p.done = true, p.now, pass.done
	}
}

// mixed is a running mean; the first measurement counts whole.
func runningMean(old, sample float64) float64 {
	if old == 0 {
		return sample
	}
	return old + smoothing*(sample-old)
}

// cycles is how many the relaxation that begins now does. news: something came since the
// last one.
func (p *cycleChoice) cycles(news bool) int {
	if p.fixed > 0 {
		return p.fixed
	}
	if p.secondsPerCycle > 0 {
		p.measure(news)
		wanted := p.exchangeCycles
		if !p.w.config.Scheme.Lockstep() {
			wanted = max(wanted, p.newsInterval)
		}
		p.chosen = max(p.minCycles, maxDecrease*p.chosen, min(wanted, maxIncrease*p.chosen, p.maxCycles))
	}
	p.beganAt, p.cyclesDone = p.now, int(math.Round(p.chosen))
	return p.cyclesDone
}

// measure takes in the relaxation that has ended.
func (p *cycleChoice) measure(news bool) {
	p.exchangeCycles = runningMean(p.exchangeCycles, max(0, (p.now-p.beganAt).Seconds()/p.secondsPerCycle-float64(p.cyclesDone)))
	if p.sweepsSinceNews++; !news || p.w.config.Scheme.Lockstep() {
		return
	}
	interval := 0.0
	if p.sweepsSinceNews > 1 {
		interval = (p.now - p.newValuesAt).Seconds() / p.secondsPerCycle
	}
	p.newsInterval += smoothing * (interval - p.newsInterval)
	p.newValuesAt, p.sweepsSinceNews = p.now, 0
}
