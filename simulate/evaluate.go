package simulate

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Met is when the assembled iterate of all ranks first met the tolerance. No rank knows that
// instant; the rest of the run is detection. The time of detection depends on the scheme, and takes
// a larger part of a run on a coarse grid than of one on the fine grid that it represents.
type Met struct {
	After  time.Duration // time since the first relaxation; 0: the tolerance was not met
	Sweeps float64       // points relaxed by then / points
}

// evaluation finds Met. It evaluates between windows, so at the same instants on any number of
// threads.
type evaluation struct {
	start  float64            // level at the start of the run
	next   microproto.Instant // no evaluation before
	at     time.Duration      // of the last evaluation; 0: there was none
	level  float64            // ln(residual/tolerance) at that time
	sweeps float64            // complete sweeps at that time
	far    float64            // time to the next evaluation, as a fraction of the run's age
	met    Met
}

// The next evaluation comes after half the time in which a straight line meets the tolerance, but at least evaluateNear
// and at most evaluateFar of the run's age later. The line is the steeper one of two: through the last two levels, and
// through the first and the last. The last two alone may be equal, or rise, while a slow machine relaxes its block.
const evaluateNear, evaluateFar = 0.004, 0.1

// evaluate evaluates the assembled iterate if that is due. next is the instant of the next event.
func (e *engine) evaluate(next microproto.Instant) error {
	j := &e.evaluation
	if !e.run.Evaluate || e.run.resumed.series != nil || next < j.next || j.met.After > 0 || e.began == microproto.Never ||
		e.hosts[0].timeline.swept == 0 {
		return nil
	}
	v, err := verify.Evaluate(e.run.Solver.Problem, e.assemble(), nil)
	if err != nil {
		return err
	}
	now := e.latest()
	j.add(e.since(now), math.Log(v.RelativeResidual/e.run.Solver.Tolerance), e.completeSweeps())
	swept := e.hosts[0].timeline.swept
	for _, m := range e.hosts {
		swept = max(swept, m.timeline.swept)
	}
	j.next = now.Add(max(j.interval(), now.Sub(e.began)/time.Duration(swept)))
	return nil
}

// metBy returns when the tolerance was met, at the latest at the end of the run with its residual.
func (e *engine) metBy(end time.Duration, residual float64) Met {
	if j := &e.evaluation; j.met.After == 0 && residual <= e.run.Solver.Tolerance {
		j.add(max(1, end), math.Log(residual/e.run.Solver.Tolerance), e.completeSweeps())
	}
	return e.evaluation.met
}

// completeSweeps returns the number of complete sweeps of the whole grid.
func (e *engine) completeSweeps() float64 {
	done, all := 0.0, 0.0
	for _, m := range e.hosts {
		done += float64(m.timeline.swept) * float64(m.block)
		all += float64(m.block)
	}
	return e.run.resumed.sweeps + done/all
}

// sweepsOf returns how many sweeps of the whole grid are so many relaxed points by rank.
func (e *engine) sweepsOf(points []uint64) float64 {
	done, all := 0.0, 0.0
	for rank, m := range e.hosts {
		done, all = done+float64(points[rank]), all+float64(m.block)
	}
	return done / all
}

// add records a level. The tolerance is met on the straight line from the level before.
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
	j.far = evaluateFar
	for _, slope := range []float64{(j.start - level) / float64(at), (j.level - level) / float64(at-j.at)} {
		if slope > 0 && level > 0 {
			j.far = min(j.far, level/slope/2/float64(at))
		}
	}
	j.at = at
	j.level, j.sweeps = level, sweeps
}

// interval returns the time to the next evaluation.
func (j *evaluation) interval() time.Duration {
	return time.Duration(max(evaluateNear, j.far) * float64(j.at))
}
