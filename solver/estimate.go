package solver

import "math"

// guess is what a peer of an asynchronous run believes of the squared residual of
// its subtree. It never ends a run; it only says when a snapshot is worth while.
type guess struct {
	own      float64
	known    bool // own was measured, or never will be again
	children []childGuess

	age       int // measurements since the last report
	reported  float64
	reportEnd bool
	everTold  bool
	unheard   bool // the parent has not said that the last report has come
}

type childGuess struct {
	known, atEnd bool
	value        float64
}

const (
	// reportRatio is how much a guess must change to be told: 20 %, so that a run
	// to 1e-6 costs each edge of the tree some hundred messages.
	reportRatio = 0.8
	// reportAge measurements after the last report any change is told, so that a
	// guess that creeps over the tolerance is heard of.
	reportAge = 32
	// Where a guess is below nearEnd times the bound (of squares), a change of 2 % is
	// told, so that the end is not found out late.
	nearEnd         = 16
	reportRatioNear = 0.98
)

func (g *guess) init(children int) { g.children = make([]childGuess, children) }

func (g *guess) hear(child int, m *message) {
	g.children[child] = childGuess{known: true, atEnd: m.reason == ReachedSweeps, value: m.a}
}

func (g *guess) sum() (float64, bool) {
	total, known := g.own, g.known
	for _, c := range g.children {
		total += c.value
		known = known && c.known
	}
	return total, known
}

func (g *guess) childrenAtEnd() bool {
	for _, c := range g.children {
		if !c.atEnd {
			return false
		}
	}
	return true
}

// report is the message to the parent, if one is due; bound is the square that the
// whole run's residual has to reach, NaN while that is not known. One report is on its
// way at a time: over a slow edge the next one waits, as the newest there is then, and
// never stands before a snapshot's messages.
func (g *guess) report(atEnd bool, bound float64) (message, bool) {
	sum, known := g.sum()
	if !known || g.unheard {
		return message{}, false
	}
	end := atEnd && g.childrenAtEnd()
	low, high := math.Min(sum, g.reported), math.Max(sum, g.reported)
	ratio := reportRatio
	if low <= nearEnd*bound {
		ratio = reportRatioNear
	}
	changed := !(low >= ratio*high) || (sum != g.reported && g.age >= reportAge)
	if g.everTold && !changed && end == g.reportEnd {
		return message{}, false
	}
	g.everTold, g.reported, g.reportEnd, g.age, g.unheard = true, sum, end, 0, true
	m := message{kind: msgEstimate, a: sum}
	if end {
		m.reason = ReachedSweeps
	}
	return m, true
}
