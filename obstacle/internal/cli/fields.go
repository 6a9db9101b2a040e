package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/page"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Bounds of the values that a page shows.
const (
	planeSide  = 256 // of a plane, at most
	wholeSide  = 40  // of a sample of a grid of three dimensions
	fieldEvery = time.Second
	fieldAge   = 3 * time.Second // after which values count as old
	maxWanted  = 64              // requests of a run that wait for values
)

// fields supplies the values of solutions to the page. While a run is in progress it asks the peers for them, but only
// if somebody looks: see launch.Samples.
type fields struct {
	mu      sync.Mutex
	ended   map[int]*page.Values // by run: samples of answers
	answers map[int]*answer      // of the newest run that has ended
	live    map[int]*liveField   // by run: those in progress
	newest  map[page.Wanted]*dated
	news    chan struct{}  // closed at the next change
	late    map[int]string // by run: why no values are known before its end
}

// liveField is the field of a run in progress. It implements launch.Samples.
type liveField struct {
	*fields
	problem *problem.Problem
	wanted  []page.Wanted // requests without an answer yet, the oldest first
	asked   page.Wanted   // of the sample in progress
	last    time.Time     // of the last request to the peers
}

// answer is the end of a run.
type answer struct {
	problem *problem.Problem
	u       []float64
	elapsed float64
}

// dated are values and when they arrived.
type dated struct {
	*page.Values
	at time.Time
}

func newFields() *fields {
	return &fields{
		ended: map[int]*page.Values{}, answers: map[int]*answer{}, live: map[int]*liveField{}, newest: map[page.Wanted]*dated{},
		news: make(chan struct{}), late: map[int]string{},
	}
}

// changed wakes those who wait. The lock is held.
func (f *fields) changed() {
	close(f.news)
	f.news = make(chan struct{})
}

// begin states that a run is in progress, and returns what asks for its values.
func (f *fields) begin(run int, p *problem.Problem) *liveField {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &liveField{fields: f, problem: p}
	f.live[run] = l
	f.changed()
	return l
}

// wait states why no values of a run are known before its end.
func (f *fields) wait(run int, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late[run] = why
}

// keep keeps the answer of a run; nil: it has none. A sample of it stays when the next run ends.
func (f *fields) keep(run int, p *problem.Problem, u []float64, elapsed float64) {
	var all *page.Values
	if u != nil && len(u) == p.Points() {
		all = (&answer{p, u, elapsed}).values(page.Wanted{Whole: true})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, run)
	delete(f.late, run)
	maps.DeleteFunc(f.newest, func(w page.Wanted, _ *dated) bool { return w.Run == run })
	clear(f.answers)
	if all != nil {
		f.ended[run], f.answers[run] = all, &answer{p, u, elapsed}
	}
	f.changed()
}

// all returns a sample of each answer.
func (f *fields) all() map[int]*page.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.ended)
}

// Values implements page.Field.
func (f *fields) Values(ctx context.Context, w page.Wanted) (*page.Values, error) {
	for {
		f.mu.Lock()
		a, sample, live, news := f.answers[w.Run], f.ended[w.Run], f.live[w.Run], f.news
		switch {
		case a != nil:
			f.mu.Unlock()
			return a.values(w), nil
		case sample != nil:
			f.mu.Unlock()
			return sample, nil
		case live == nil:
			why := f.late[w.Run]
			f.mu.Unlock()
			if why != "" {
				return nil, fmt.Errorf("%w yet: %s", page.ErrNoValues, why)
			}
			return nil, page.ErrNoValues
		}
		w.Plane = min(w.Plane, live.problem.N[w.Axis]-1) // before it is queued: planes beyond the grid are one
		if have := f.newest[w]; have != nil && time.Since(have.at) < fieldAge {
			delete(f.newest, w) // each answer is sent once, so that the next request asks the peers
			f.mu.Unlock()
			return have.Values, nil
		}
		if !slices.Contains(live.wanted, w) && len(live.wanted) < maxWanted {
			live.wanted = append(live.wanted, w)
		}
		f.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Due implements launch.Samples.
func (f *liveField) Due() (rendezvous.Sample, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wanted) == 0 || time.Since(f.last) < fieldEvery {
		return rendezvous.Sample{}, false
	}
	f.asked, f.wanted, f.last = f.wanted[0], f.wanted[1:], time.Now()
	return sampleOf(f.problem.N, f.problem.Dimension, f.asked), true
}

// Take implements launch.Samples.
func (f *liveField) Take(s rendezvous.Sample, u []float64, at launch.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live[f.asked.Run] != f {
		return // the run has ended
	}
	v := valuesOf(f.problem.AtStep(at.Step), &s, u, at.Elapsed.Seconds())
	for w, old := range f.newest {
		if time.Since(old.at) > fieldAge {
			delete(f.newest, w)
		}
	}
	f.newest[f.asked] = &dated{v, time.Now()}
	f.changed()
}

// sampleOf returns the points that show a plane, or the whole grid.
func sampleOf(n [3]int, dimension int, w page.Wanted) rendezvous.Sample {
	side := planeSide
	if w.Whole && dimension == 3 {
		side = wholeSide
	}
	s := rendezvous.Sample{}
	for a := range 3 {
		s.Stride[a] = max(1, (n[a]+side-1)/side)
		s.Size[a] = (n[a]-1)/s.Stride[a] + 1
		s.First[a] = (n[a] - 1 - (s.Size[a]-1)*s.Stride[a]) / 2
	}
	if !w.Whole {
		s.First[w.Axis], s.Stride[w.Axis], s.Size[w.Axis] = min(w.Plane, n[w.Axis]-1), 1, 1
	}
	return s
}

// values returns the part of an answer that is wanted.
func (a *answer) values(w page.Wanted) *page.Values {
	n := a.problem.N
	s := sampleOf(n, a.problem.Dimension, w)
	u := s.Read(problem.Box{Hi: n}, func(dst []float64, part problem.Box) {
		at := 0
		for z := part.Lo[2]; z < part.Hi[2]; z++ {
			for y := part.Lo[1]; y < part.Hi[1]; y++ {
				at += copy(dst[at:], a.u[(z*n[1]+y)*n[0]:][part.Lo[0]:part.Hi[0]])
			}
		}
	})
	return valuesOf(a.problem, &s, u, a.elapsed)
}

// valuesOf adds the obstacles to values.
func valuesOf(p *problem.Problem, s *rendezvous.Sample, u []float64, elapsed float64) *page.Values {
	v := &page.Values{N: p.N, First: s.First, Stride: s.Stride, Size: s.Size, Elapsed: elapsed, U: u}
	if p.Obstacle != nil {
		v.Lower = make([]float64, 0, len(u))
	}
	if p.Upper != nil {
		v.Upper = make([]float64, 0, len(u))
	}
	for z := range s.Size[2] {
		for y := range s.Size[1] {
			for x := range s.Size[0] {
				at := [3]int{x, y, z}
				for a := range 3 {
					at[a] = 1 + s.First[a] + at[a]*s.Stride[a]
				}
				phi, psi := p.Obstacles(p.At(at[0], at[1], at[2]))
				if p.Obstacle != nil {
					v.Lower = append(v.Lower, phi)
				}
				if p.Upper != nil {
					v.Upper = append(v.Upper, psi)
				}
			}
		}
	}
	return v
}

var _ launch.Samples = (*liveField)(nil)
