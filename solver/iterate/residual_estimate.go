package iterate

import (
	"math"
	"time"
)

// residualEstimate is what a peer of an asynchronous run believes of the squared residual of
// its subtree. It never ends a run; it only says when a snapshot is worth while.
type residualEstimate struct {
	own      float64
	known    bool // own was measured, or never will be again
	children []childGuess

	age       int // measurements since the last report
	reported  float64
	reportEnd bool
	everTold  bool
	unheard   bool // the parent has not said that the last report has come

	toldAt    time.Duration // of the last report
	way       time.Duration // to the parent and back, as the last answer took
	toldRound time.Duration
}

type childGuess struct {
	known, atEnd bool
	value        float64
	round        time.Duration // to the farthest peer below and back
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

func (g *residualEstimate) init(children int) { g.children = make([]childGuess, children) }

func (g *residualEstimate) hear(child int, m *Message) {
	g.children[child] = childGuess{known: true, atEnd: m.Reason == ReachedSweeps, value: m.A, round: seconds(m.B)}
}

// answered notes that the parent has heard the last report.
func (g *residualEstimate) answered(now time.Duration) { g.unheard, g.way = false, now-g.toldAt }

// round is how long a message takes to the farthest peer of the subtree and back, from
// the parent where there is one; 0: not known yet.
func (g *residualEstimate) round() time.Duration {
	longest := time.Duration(0)
	for _, c := range g.children {
		longest = max(longest, c.round)
	}
	return g.way + longest
}

// seconds is a time that was told; what makes no sense counts as not known.
func seconds(s float64) time.Duration {
	if !(s > 0 && s < farAhead.Seconds()) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

func (g *residualEstimate) sum() (float64, bool) {
	total, known := g.own, g.known
	for _, c := range g.children {
		total += c.value
		known = known && c.known
	}
	return total, known
}

func (g *residualEstimate) childrenAtEnd() bool {
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
func (g *residualEstimate) report(now time.Duration, atEnd bool, bound float64) (Message, bool) {
	sum, known := g.sum()
	if !known || g.unheard {
		return Message{}, false
	}
	end := atEnd && g.childrenAtEnd()
	low, high := math.Min(sum, g.reported), math.Max(sum, g.reported)
	ratio := reportRatio
	if low <= nearEnd*bound {
		ratio = reportRatioNear
	}
	changed := !(low >= ratio*high) || (sum != g.reported && g.age >= reportAge)
	round := g.round()
	changed = changed || round > 2*g.toldRound
	if g.everTold && !changed && end == g.reportEnd {
		return Message{}, false
	}
	g.everTold, g.reported, g.reportEnd, g.age, g.unheard = true, sum, end, 0, true
	g.toldAt, g.toldRound = now, round
	m := Message{Kind: MsgEstimate, A: sum, B: round.Seconds()}
	if end {
		m.Reason = ReachedSweeps
	}
	return m, true
}
