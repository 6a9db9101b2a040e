package method

import "math"

// Alternation decides which of two methods continues an iteration whose rates of convergence are not known in advance. A
// method goes on while its rate promises the end before the work so far has doubled. Otherwise the other one is tried, and
// the one goes on that reduced the residual more per unit of work when it was used last. The rate of SOR shows late, after
// its factor and the residual have settled; it is tried again, for longer, each time the work has doubled, and for as long as
// all work before if the other method stands still. While SOR stands still, the other method is tried again, too. So the
// work is a small multiple of that of the better method alone.
//
// Alternation depends on its inputs alone: peers that pass exact residuals take the same decisions.
type Alternation struct {
	SOR    int        // the method that is SOR, 0 or 1
	second bool       // the second method is in use
	rates  [2]float64 // decrease of the logarithm of the residual per unit of work
	usedAt [2]float64 // work until which the methods were used last; 0: never
	least  float64    // work of the shortest trial
	begun  float64    // work before the run or the time step
	since  float64    // work since then at which the method in use was tried or chosen
	mark   float64    // the same, at which the observation of the rate begins
	due    float64    // the same, at which the next decision is due
	from   float64    // the same, at which the observation began
	level  float64    // residual there; 0: it has not begun
}

// standingStill is the multiple of the work so far from which a method that needs more of it is regarded as standing still.
const standingStill = 100

// ShortestTrial is the least work of a trial, in sweeps. Multigrid solves most problems in less.
const ShortestTrial = 48

// Begin prepares for a run, or a time step, after that much work. The method in use remains. A trial takes least at least.
func (a *Alternation) Begin(work, least float64) {
	a.begun, a.usedAt = work, [2]float64{}
	a.least = max(ShortestTrial, least)
	a.since = 0
	a.plan(0, a.least)
}

// Continue goes on, after that much work, from the state of an earlier run at its end.
func (a *Alternation) Continue(earlier *Alternation, end, work float64) {
	*a = *earlier
	a.begun += work - end
}

// plan sets when the next decision is due. The first half of the interval is not observed, since changes disturb it.
func (a *Alternation) plan(work, length float64) {
	a.mark, a.due = work+length/2, work+length
	a.level = 0
}

// Fields implements iterate.State.
func (a *Alternation) Fields(visit func(field any)) {
	visit(&a.second)
	for i := range a.rates {
		visit(&a.usedAt[i])
		visit(&a.rates[i])
	}
	for _, v := range []*float64{&a.least, &a.begun, &a.since, &a.mark, &a.due, &a.from, &a.level} {
		visit(v)
	}
}

// Current returns the method in use, 0 or 1.
func (a *Alternation) Current() int {
	if a.second {
		return 1
	}
	return 0
}

// Left returns the work from then on until the next observation is due.
func (a *Alternation) Left(work float64) float64 {
	if work -= a.begun; a.level == 0 {
		return a.mark - work
	}
	return a.due - work
}

// Observe records the relative residual after that much work and reports whether the other method goes on. settle is the
// work after which the rate of the method in use shows.
func (a *Alternation) Observe(work, residual, tolerance, settle float64) (change bool) {
	work -= a.begun
	switch {
	case work < a.mark || !(tolerance > 0) || !(residual > 0):
		return false
	case a.level == 0:
		a.from, a.level = work, residual
		return false
	case work < a.due:
		return false
	}
	i := a.Current()
	a.rates[i], a.usedAt[i] = math.Log(a.level/residual)/(work-a.from), work
	ends := a.rates[i]*work >= math.Log(residual/tolerance)
	if settled := a.since + min(settle, a.since); !ends && work < settled {
		a.plan(work, settled-work)
		return false
	}
	stands := standingStill*a.rates[i]*work < math.Log(residual/tolerance)
	again := (1-i == a.SOR || stands) && a.usedAt[1-i] <= work/2
	if change = !ends && (a.usedAt[1-i] == 0 || again || a.rates[1-i] > a.rates[i]); !change {
		a.plan(work, work)
		return false
	}
	length := work / 4
	if again && stands && 1-i == a.SOR {
		length = work
	}
	a.second, a.since = !a.second, work
	a.plan(work, max(a.least, length))
	return true
}
