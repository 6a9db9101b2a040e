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
	children []childEstimate

	sinceReport  int // measurements since the last report
	reported     float64
	reportedEnd  bool
	everReported bool
	awaitsReply  bool // the parent has not said that the last report has come

	reportedAt        time.Duration // of the last report
	parentRoundTrip   time.Duration // to the parent and back, as the last answer took
	reportedRoundTrip time.Duration
}

type childEstimate struct {
	known, atEnd bool
	value        float64
	roundTrip    time.Duration // to the farthest peer below and back
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
	nearTolerance   = 16
	reportRatioNear = 0.98
)

func (g *residualEstimate) init(children int) { g.children = make([]childEstimate, children) }

func (g *residualEstimate) receive(child int, m *Message) {
	g.children[child] = childEstimate{known: true, atEnd: m.Reason == ReachedSweeps, value: m.A, roundTrip: validSeconds(m.B)}
}

// answered notes that the parent has heard the last report.
func (g *residualEstimate) acknowledged(now time.Duration) {
	g.awaitsReply, g.parentRoundTrip = false, now-g.reportedAt
}

// round is how long a message takes to the farthest peer of the subtree and back, from
// the parent where there is one; 0: not known yet.
func (g *residualEstimate) roundTrip() time.Duration {
	longest := time.Duration(0)
	for _, c := range g.children {
		longest = max(longest, c.roundTrip)
	}
	return g.parentRoundTrip + longest
}

// seconds is a time that was told; what makes no sense counts as not known.
func validSeconds(s float64) time.Duration {
	if !(s > 0 && s < maxForecast.Seconds()) {
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
	if !known || g.awaitsReply {
		return Message{}, false
	}
	end := atEnd && g.childrenAtEnd()
	low, high := math.Min(sum, g.reported), math.Max(sum, g.reported)
	ratio := reportRatio
	if low <= nearTolerance*bound {
		ratio = reportRatioNear
	}
	changed := !(low >= ratio*high) || (sum != g.reported && g.sinceReport >= reportAge)
	round := g.roundTrip()
	changed = changed || round > 2*g.reportedRoundTrip
	if g.everReported && !changed && end == g.reportedEnd {
		return Message{}, false
	}
	g.everReported, g.reported, g.reportedEnd, g.sinceReport, g.awaitsReply = true, sum, end, 0, true
	g.reportedAt, g.reportedRoundTrip = now, round
	m := Message{Kind: MsgEstimate, A: sum, B: round.Seconds()}
	if end {
		m.Reason = ReachedSweeps
	}
	return m, true
}
