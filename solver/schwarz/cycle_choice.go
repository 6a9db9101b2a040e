package schwarz

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// cycleChoice chooses the number of cycles of the local method between two exchanges. Without a configured
// number it uses as many cycles as an exchange costs, so that neither more than doubles the cost of the other.
// The cost of an exchange is the time of a relaxation without its cycles: in lockstep the network latency and
// the lead of fast peers, and in all schemes the residual, the coarse correction and the assembly. If no peer
// waits and several relaxations pass between two arrivals, another solve with unchanged neighbour values brings
// little, and the work is what fits between arrivals. The interval of arrivals alone is not sufficient: peers
// with more cycles send less often, which would in turn increase the number of cycles.
type cycleChoice struct {
	w         *peer
	fixed     int
	minCycles float64
	maxCycles float64
	now       time.Duration

	timing          bool // a cycle is being timed
	timedFrom       time.Duration
	done            int
	secondsPerCycle float64
	beganAt         time.Duration
	cyclesDone      int // cycles of the relaxation that began at beganAt
	newValuesAt     time.Duration
	sweepsSinceNews int     // relaxations since the last arrival
	exchangeCycles  float64 // cost of an exchange in cycles
	newsInterval    float64 // cycles between two arrivals that are further apart than relaxations
	chosen          float64
}

// Bounds of the choice, in cycles. Point methods do at most maxCrossings times as many as values need to cross
// the region. The first relaxation does firstFactor times the minimum.
const (
	maxMultigridCycles = 4
	maxCrossings       = 2
	firstFactor        = 2
	smoothing          = 0.25 // weight of a new measurement
	maxDecrease        = 0.5  // factor from one relaxation to the next
	maxIncrease        = 4
)

func (p *cycleChoice) init(w *peer) {
	p.w, p.fixed = w, w.config.Method.InnerCycles
	p.minCycles, p.maxCycles = 1, maxMultigridCycles
	longest := slices.Max(w.layout.N[:])
	switch localName(&w.config.Method) {
	case problem.SOR:
		p.minCycles, p.maxCycles = 4, float64(maxCrossings*longest)
	case problem.Richardson:
		p.minCycles, p.maxCycles = 4, float64(maxCrossings*longest*longest)
	}
	p.maxCycles = max(p.minCycles, p.maxCycles)
	p.chosen = p.first()
}

// first returns the number of cycles of the first relaxation.
func (p *cycleChoice) first() float64 { return min(firstFactor*p.minCycles, p.maxCycles) }

// omega returns the factor of the local SOR: the optimum for a membrane with as many points as the region, or
// as the number of sweeps if that is smaller. The gain of a factor near 2 appears only after about that many
// sweeps; before, the error grows. For a nonsymmetric operator the factor is 1.
func (p *cycleChoice) omega() float64 {
	m := &p.w.config.Method
	switch {
	case m.Omega != 0:
		return m.Omega
	case !p.w.block.Problem.Symmetric():
		return 1
	}
	sweeps := cmp.Or(p.fixed, int(p.first()))
	return method.MembraneOmega(min(slices.Max(p.w.layout.N[:]), sweeps))
}

// observe records the time whenever the shell requests an operation.
func (p *cycleChoice) observe(now time.Duration) {
	p.now = max(p.now, now)
	pass := &p.w.relaxation
	if p.timing && (pass.stage != stageSolve || pass.done != p.done) {
		p.secondsPerCycle = runningMean(p.secondsPerCycle, (p.now - p.timedFrom).Seconds())
		p.timing = false
	}
	if pass.stage == stageSolve && !p.timing {
		p.timing = true
		p.timedFrom = p.now
		p.done = pass.done
	}
}

// runningMean returns an exponential mean. The first sample has full weight.
func runningMean(old, sample float64) float64 {
	if old == 0 {
		return sample
	}
	return old + smoothing*(sample-old)
}

// cycles returns the number of cycles of the relaxation that begins now. news: values have arrived since the
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

// measure includes the relaxation that has ended.
func (p *cycleChoice) measure(news bool) {
	cost := (p.now-p.beganAt).Seconds()/p.secondsPerCycle - float64(p.cyclesDone)
	p.exchangeCycles = runningMean(p.exchangeCycles, max(0, cost))
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
