package monitor

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Event is one of the types below.
type Event interface{ apply(m *Monitor, e *entry) }

// Phase states that a run enters a phase.
type Phase string

// Progress is an observation of a run in progress. Those earlier than one before are ignored.
type Progress struct {
	Elapsed  time.Duration // since the first relaxation
	Step     int
	Sweep    float64
	Residual float64 // NaN while it is unknown
}

// Peers replaces the accounts of all peers.
type Peers []Peer

// Places replaces the places of all peers.
type Places []Place

// Reads replaces what the peers have read from each other, by rank. Add puts ranks into bins.
type Reads []Read

// Ages counts the faces that were read by age in sweeps.
type Ages struct {
	Counts iterate.AgeCounts `json:"counts"`
	Sum    float64           `json:"sum"` // of the ages
}

// Sessions replaces the sessions and their sums.
type Sessions struct {
	All     []Session
	Traffic Traffic
}

// Epoch is the number of times that the run went on after losses and moves.
type Epoch int

// Lead states which process leads a run, and at which addresses the run goes on if that is lost.
type Lead struct {
	Term    int // 0: no other process can lead the run
	Leader  string
	Keepers []string
}

// Marks replaces all marks but those of the model, in the order in which they happened. A mark may get the time that
// it took later; none disappears.
type Marks []Mark

// End states the result of a run.
type End struct {
	Reason, Failure string
	Converged       bool
	Elapsed         float64
	Sweep           float64
	Residual        float64
	Contact         nullable.Count
}

func (p Phase) apply(m *Monitor, e *entry) {
	if e.State.Phase != string(p) && e.State.Phase != Ended {
		e.State.Phase, e.state = string(p), m.change()
	}
}

func (p Progress) apply(m *Monitor, e *entry) {
	t := p.Elapsed.Seconds()
	if t < e.State.Elapsed || e.State.Phase == Ended {
		return
	}
	e.estimator.Step(p.Step, e.Info.Steps)
	e.estimator.Update(p.Elapsed, uint64(max(0, p.Sweep)), p.Residual)
	s := &e.State
	s.Elapsed, s.Step, s.Sweep, s.Residual = t, p.Step, p.Sweep, nullable.Number(p.Residual)
	s.LeftLeast, s.LeftMost = nullable.NaN(), nullable.NaN()
	if left, known := e.estimator.Left(); known {
		s.LeftLeast, s.LeftMost = nullable.Number(left.Least.Seconds()), nullable.Number(left.Most.Seconds())
	}
	e.state = m.change()
	if p.Residual > 0 && !math.IsInf(p.Residual, 0) {
		e.sample(Sample{t, p.Sweep, nullable.Number(p.Residual), p.Step})
	}
}

// sample adds an observation, or skips it.
func (e *entry) sample(s Sample) {
	if n := len(e.Samples); n > 0 && e.Samples[n-1] == s {
		return
	}
	if e.skipped++; len(e.Samples) > 0 && e.skipped < e.Stride {
		return
	}
	e.skipped = 0
	if e.Samples = append(e.Samples, s); len(e.Samples) == MaxSamples {
		e.Samples, e.skipped = halve(e.Samples), e.Stride // the last one is left out
		e.Stride *= 2
	}
}

// halve returns every second sample, the first one included.
func halve(all []Sample) []Sample {
	n := (len(all) + 1) / 2
	for i := range n {
		all[i] = all[2*i]
	}
	return all[:n]
}

// replace sets a section if it has changed, and its version.
func replace[T any](m *Monitor, section *[]T, version *uint64, with []T) {
	if !reflect.DeepEqual(*section, with) {
		*section, *version = append([]T{}, with...), m.change() // not nil, which means no change
	}
}

func (p Peers) apply(m *Monitor, e *entry)  { replace(m, &e.Peers, &e.peers, p) }
func (p Places) apply(m *Monitor, e *entry) { replace(m, &e.Places, &e.places, p) }

func (r Reads) apply(m *Monitor, e *entry) {
	size := BinSize(e.Info.Peers)
	if e.Info.Bin != size {
		e.Info.Bin, e.state = size, m.change()
	}
	type pair struct{ by, of int }
	sums := map[pair]*Read{}
	for _, one := range r {
		k := pair{one.By / size, one.Of / size}
		s := sums[k]
		if s == nil {
			s = &Read{By: k.by, Of: k.of}
			sums[k] = s
		}
		if all := s.Faces + one.Faces; all > 0 {
			s.Mean += (one.Mean - s.Mean) * float64(one.Faces) / float64(all)
			s.Faces = all
		}
		s.Newest = max(s.Newest, one.Newest)
	}
	binned := make([]Read, 0, len(sums))
	for _, s := range sums {
		binned = append(binned, *s)
	}
	slices.SortFunc(binned, func(a, b Read) int { return cmp.Or(a.By-b.By, a.Of-b.Of) })
	replace(m, &e.Reads, &e.reads, binned)
}

func (a Ages) apply(m *Monitor, e *entry) {
	if e.State.Ages != a {
		e.State.Ages, e.state = a, m.change()
	}
}

func (n Epoch) apply(m *Monitor, e *entry) {
	if e.State.Epoch != int(n) {
		e.State.Epoch, e.state = int(n), m.change()
	}
}

func (l Lead) apply(m *Monitor, e *entry) {
	s := &e.State
	l.Keepers = l.Keepers[:min(len(l.Keepers), MaxKeepers)]
	if l.Term == s.Term && l.Leader == s.Leader && slices.Equal(l.Keepers, s.Keepers) {
		return
	}
	if s.Leader != "" && l.Leader != "" && l.Leader != s.Leader {
		e.mark(m, Mark{Kind: MarkLeader, Rank: -1, At: s.Elapsed, Took: nullable.NaN(),
			Text: l.Leader + " leads the run, after " + s.Leader})
	}
	s.Term, s.Leader, s.Keepers, e.state = l.Term, l.Leader, slices.Clone(l.Keepers), m.change()
}

func (s Sessions) apply(m *Monitor, e *entry) {
	if e.State.Traffic != s.Traffic || e.State.Sessions != len(s.All) {
		e.State.Traffic, e.State.Sessions, e.state = s.Traffic, len(s.All), m.change()
	}
	all := slices.Clone(s.All)
	slices.SortStableFunc(all, func(a, b Session) int { return cmp.Or(a.From-b.From, cmp.Compare(a.Name, b.Name)) })
	e.changes(m, all)
	if len(all) > MaxSessions { // those that lose most are of interest
		slices.SortStableFunc(all, func(a, b Session) int { return -cmp.Compare(a.Loss, b.Loss) })
		all = slices.Clone(all[:MaxSessions])
	}
	replace(m, &e.Sessions, &e.sessions, all)
}

// changes marks the sessions whose composition or network has changed. all is in order.
func (e *entry) changes(m *Monitor, all []Session) {
	for i := range e.Sessions {
		old := &e.Sessions[i]
		at, found := slices.BinarySearchFunc(all, old, func(a Session, b *Session) int {
			return cmp.Or(a.From-b.From, cmp.Compare(a.Name, b.Name))
		})
		if !found || all[at].From > all[at].To { // the other end marks it
			continue
		}
		if s := &all[at]; s.Changes > old.Changes || s.Moves > old.Moves {
			e.mark(m, Mark{Kind: MarkChange, Rank: s.From, At: e.State.Elapsed, Took: nullable.NaN(),
				Text: s.Name + ": " + s.Column})
		}
	}
}

// mark adds a mark.
func (e *entry) mark(m *Monitor, k Mark) {
	if len(e.Marks) == MaxMarks {
		e.State.Dropped, e.state = e.State.Dropped+1, m.change()
		return
	}
	e.Marks, e.marks = append(e.Marks, k), append(e.marks, m.change())
}

func (all Marks) apply(m *Monitor, e *entry) {
	at := 0
	for _, k := range all {
		for at < len(e.Marks) && e.Marks[at].own() {
			at++
		}
		if at == len(e.Marks) {
			if at == MaxMarks {
				break
			}
			e.mark(m, k)
		} else if !same(e.Marks[at], k) {
			e.Marks[at], e.marks[at] = k, m.change()
		}
		at++
	}
	own := 0
	for _, k := range e.Marks {
		if !k.own() {
			own++
		}
	}
	if n := len(all) - own; n > 0 && n > e.State.Dropped {
		e.State.Dropped, e.state = n, m.change()
	}
}

// same reports whether two marks are equal, also in what is unknown.
func same(a, b Mark) bool {
	unknown := !a.Took.Known() && !b.Took.Known()
	if unknown {
		a.Took, b.Took = 0, 0
	}
	return a == b
}

func (x End) apply(m *Monitor, e *entry) {
	s := &e.State
	s.Phase, s.Reason, s.Failure, s.Converged = Ended, x.Reason, x.Failure, x.Converged
	s.Elapsed = x.Elapsed
	s.Sweep, s.Residual, s.Contact = x.Sweep, nullable.Number(x.Residual), x.Contact
	s.LeftLeast, s.LeftMost = nullable.NaN(), nullable.NaN()
	e.state = m.change()
	if x.Residual > 0 && !math.IsInf(x.Residual, 0) {
		e.skipped = e.Stride // the answer is always shown
		t := x.Elapsed
		if n := len(e.Samples); n > 0 {
			t = max(t, e.Samples[n-1].Time)
		}
		e.sample(Sample{t, x.Sweep, nullable.Number(x.Residual), s.Step})
	}
	e.mark(m, Mark{Kind: MarkEnd, Rank: -1, At: x.Elapsed, Took: nullable.NaN(), Text: cmp.Or(x.Failure, x.Reason)})
}
