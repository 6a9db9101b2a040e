package launch

import (
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Samples receives values at some points of the grid while a run is in progress, for display.
type Samples interface {
	// Due returns the points that are wanted next, or false. The launcher calls it often.
	Due() (rendezvous.Sample, bool)
	// Take accepts their values [z][y][x], which it may keep; NaN: unknown. It must return at once.
	Take(s rendezvous.Sample, u []float64, at Progress)
}

// sample is a set of values that peers were asked for.
type sample struct {
	rendezvous.Sample
	number  int // of the newest, from 1
	u       []float64
	awaited map[*member]bool   // whose values have not arrived; empty: none is in progress
	ticks   int                // since the request
	wanted  *rendezvous.Sample // next; nil: none
}

// sampleTime bounds the wait for a peer. Then the values of the others are shown.
const sampleTime = 2 * time.Second

// samplable reports whether peers can be asked for values.
func (r *run) samplable() bool {
	return r.Samples != nil && r.failure == nil && !r.stopping && !r.active && len(r.sample.awaited) == 0 &&
		r.sample.wanted == nil
}

// checkSample asks the peers for values, at every tick, if some are wanted.
func (r *run) checkSample(wanted *rendezvous.Sample) {
	s := &r.sample
	if r.failure != nil {
		return
	}
	if wanted != nil && wanted.Valid(r.Problem.N) {
		s.wanted = wanted
	}
	if len(s.awaited) > 0 {
		if s.ticks++; s.ticks < r.ticks(sampleTime) {
			return
		}
		r.endSample()
	}
	if r.stopping || r.active || s.wanted == nil {
		return
	}
	want := *s.wanted
	*s = sample{Sample: want, number: s.number + 1, u: want.Unknown(), awaited: map[*member]bool{}}
	for _, m := range r.members {
		if m.conn != 0 && !m.done() {
			s.awaited[m] = true
			r.send(m, rendezvous.Capture{Number: s.number, Sample: &want})
		}
	}
}

// receiveSample places values of a peer.
func (r *run) receiveSample(m *member, msg *rendezvous.Captured, values []float64) {
	s := &r.sample
	if msg.Number != s.number || !s.awaited[m] {
		return
	}
	delete(s.awaited, m)
	s.Place(s.u, msg.Box, values)
	if len(s.awaited) == 0 {
		r.endSample()
	}
}

func (r *run) endSample() {
	at := r.beat
	at.Elapsed = r.now
	r.add(sampled{r.sample.Sample, r.sample.u, at})
	r.sample.u, r.sample.awaited = nil, nil
}
