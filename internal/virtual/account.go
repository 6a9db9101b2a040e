package virtual

import (
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
)

// account counts what a run does.
type account struct {
	segments  uint64
	ranks     []Rank
	staleness [64]uint64
}

func (a *account) init(n int) { a.ranks = make([]Rank, n) }

func (a *account) sent(rank, segments, bytes int) {
	r := &a.ranks[rank]
	a.segments += uint64(segments)
	r.Segments += uint64(segments)
	r.Bytes += uint64(bytes)
}

func (a *account) lose(rank, frames int) { a.ranks[rank].Lost += uint64(frames) }

// read is called when a sweep begins: it reads the newest faces that have come.
func (a *account) read(h *Host) {
	iterate := h.Peer.Outcome().Iterate
	for _, nb := range h.neighbours {
		if len(nb.Slots) == 0 {
			continue
		}
		age := 0
		if label := solver.LabelIterate(nb.heard); label < iterate {
			age = int(min(iterate-label, solver.Iteration(len(a.staleness)-1)))
		}
		a.staleness[age]++
	}
}

// timeline notes when the sweeps of a rank ended: those whose number is a multiple of a
// stride, which doubles whenever there are too many.
type timeline struct {
	swept  solver.Iteration
	stride solver.Iteration
	ends   []microproto.Instant // of sweeps stride, 2·stride …
	last   microproto.Instant
}

const timelineMost = 64

// add notes the end of another sweep and returns how many there were.
func (t *timeline) add(now microproto.Instant) solver.Iteration {
	t.swept++
	t.last = now
	if t.stride == 0 {
		t.stride = 1
	}
	if t.swept%t.stride == 0 {
		t.ends = append(t.ends, now)
		if len(t.ends) == timelineMost {
			for i := range timelineMost / 2 {
				t.ends[i] = t.ends[2*i+1]
			}
			t.ends = t.ends[:timelineMost/2]
			t.stride *= 2
		}
	}
	return t.swept
}

// steady is what a sweep took in the second half; 0: there were too few.
func (t *timeline) steady() time.Duration {
	half := len(t.ends) / 2
	if half == 0 {
		return 0
	}
	return t.last.Sub(t.ends[half-1]) / time.Duration(t.swept-solver.Iteration(half)*t.stride)
}

// result is what has become of the run.
func (e *engine) result() (*Result, error) {
	r := &Result{
		Reason: e.ended, Virtual: e.elapsed(), Setup: time.Duration(e.now), Residual: math.NaN(),
		Staleness: e.account.staleness, Events: e.events, Ranks: e.account.ranks,
	}
	if e.began != microproto.Never {
		r.Setup = time.Duration(e.began)
	}
	if e.done == len(e.hosts) {
		r.Reason = e.hosts[0].Peer.Outcome().Reason
	}
	var steady []time.Duration
	for rank, h := range e.hosts {
		m, k := &e.machines[rank], &r.Ranks[rank]
		e.pool.join(&m.task)
		k.Sweeps = float64(m.points) / float64(m.block)
		k.Relaxing, k.Protocol = m.relaxing, m.stolen
		if until := h.Busy(); h.Relaxing() && until > e.now {
			k.Relaxing = max(0, k.Relaxing-until.Sub(e.now)) // the rest of its part is not done
		}
		k.Idle = max(0, r.Virtual-k.Relaxing-k.Protocol)
		h.Sessions(func(id p2psap.SessionID, _ bool) {
			if i, err := h.Node.Info(id); err == nil {
				k.Messages += i.MessagesSent
			}
		})
		if s := m.timeline.steady(); s > 0 {
			steady = append(steady, s)
		}
	}
	if len(steady) > 0 {
		slices.Sort(steady)
		r.Steady = steady[len(steady)/2]
	}
	r.U = e.assemble()
	v, err := solver.Evaluate(e.run.Solver.Problem, r.U, nil)
	if err != nil {
		return r, err
	}
	r.Residual = v.RelativeResidual
	return r, nil
}

// assemble puts the blocks of all ranks together, [z][y][x].
func (e *engine) assemble() []float64 {
	p := e.run.Solver.Problem
	u := make([]float64, p.Points())
	var v []float64
	for _, h := range e.hosts {
		box := h.Peer.Box()
		v = slices.Grow(v[:0], box.Points())[:box.Points()]
		h.Peer.Solution(v)
		Place(u, p.N, box, v)
	}
	return u
}

// Place puts the values of a box, [z][y][x], into a grid of n points.
func Place(u []float64, n [3]int, b solver.Box, v []float64) {
	i := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i += copy(u[b.Lo[0]+n[0]*(y+n[1]*z):], v[i:i+b.Hi[0]-b.Lo[0]])
		}
	}
}
