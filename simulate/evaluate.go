package simulate

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Met is when the newest complete iterates of all ranks, assembled, first met the tolerance.
// No rank knows: what a run takes beyond that is finding out. How much that is differs from
// scheme to scheme, and it is more of a run on a coarse grid than of one on the fine grid
// that it stands for.
type Met struct {
	After  time.Duration // the first relaxation; 0: it was not met
	Sweeps float64       // points relaxed by then / points
}

// judge looks for that, between windows, so at the same instants on any number of threads.
type evaluation struct {
	next   microproto.Instant // no look before
	at     time.Duration      // of the last look; 0: there was none
	level  float64            // ln(residual/tolerance), then
	sweeps float64            // complete ones, then
	far    float64            // to the next look, in parts of the run's age
	met    Met
}

// A look comes when half the time has gone by in which the straight line through the last two
// levels meets the tolerance, judgeNear to judgeFar of the run's age after the one before.
const judgeNear, judgeFar = 0.004, 0.25

// judge looks if it is time; next is the earliest instant that anything happens at.
func (e *engine) evaluate(next microproto.Instant) error {
	j := &e.evaluation
	if !e.run.Evaluate || next < j.next || j.met.After > 0 || e.began == microproto.Never ||
		e.hosts[0].timeline.swept == 0 {
		return nil
	}
	v, err := verify.Evaluate(e.run.Solver.Problem, e.assemble(), nil)
	if err != nil {
		return err
	}
	now := e.latest()
	j.add(now.Sub(e.began), math.Log(v.RelativeResidual/e.run.Solver.Tolerance), e.completeSweeps())
	j.next = now.Add(max(j.interval(), now.Sub(e.began)/time.Duration(e.hosts[0].timeline.swept)))
	return nil
}

// complete is how many sweeps of the whole grid are complete.
func (e *engine) completeSweeps() float64 {
	done, all := 0.0, 0.0
	for _, m := range e.hosts {
		done += float64(m.timeline.swept) * float64(m.block)
		all += float64(m.block)
	}
	return done / all
}

// look takes a level; the tolerance is met on the straight line from the one before.
func (j *evaluation) add(at time.Duration, level, sweeps float64) {
	if at <= 0 {
		return
	}
	switch part := j.level / (j.level - level); {
	case level > 0 || math.IsNaN(level):
	case j.at > 0 && part > 0 && part < 1:
		j.met = Met{j.at + time.Duration(part*float64(at-j.at)), j.sweeps + part*(sweeps-j.sweeps)}
	default:
		j.met = Met{at, sweeps}
	}
	j.far = judgeFar
	if slope := (j.level - level) / float64(at-j.at); j.at > 0 && slope > 0 {
		j.far = level / slope / 2 / float64(at)
	}
	j.at, j.level, j.sweeps = at, level, sweeps
}

// gap is how long there is nothing to look at.
func (j *evaluation) interval() time.Duration {
	return time.Duration(max(judgeNear, min(j.far, judgeFar)) * float64(j.at))
}
