package iterate

import (
	"math"
	"slices"
	"time"
)

// residualEstimate is a peer's estimate of the squared residual of its subtree in a run that reads old
// values. It never ends a run; it only influences when snapshots are taken.
type residualEstimate struct {
	own      float64
	known    bool // own was measured, or it will not be measured again
	children []childEstimate

	sinceReport  int // measurements since the last report
	reported     float64
	reportedEnd  bool
	everReported bool
	awaitsReply  bool // the parent has not acknowledged the last report

	reportedAt        time.Duration
	parentRoundTrip   time.Duration // from the last report to its acknowledgement
	reportedRoundTrip time.Duration
}

type childEstimate struct {
	known, atEnd bool
	value        float64
	roundTrip    time.Duration // from the child's parent to the farthest peer below the child and back
}

const (
	// reportRatio is the relative change at which an estimate is reported: 20 %. A run to 1e-6 then
	// costs each edge of the tree some hundred messages.
	reportRatio = 0.8
	// reportAge is the number of measurements after a report from which any change is reported, so that
	// slow changes across the tolerance are noticed.
	reportAge = 32
	// nearTolerance bounds, as a multiple of the squared tolerance, the estimates that are reported after
	// a change of 2 % (reportRatioNear), so that the end is noticed early.
	nearTolerance   = 16
	reportRatioNear = 0.98
)

func (g *residualEstimate) receive(child int, m *Message) {
	g.children[child] = childEstimate{
		known: true, atEnd: m.Reason == ReachedSweeps, value: m.A, roundTrip: validSeconds(m.B),
	}
}

// acknowledged notes that the parent has received the last report.
func (g *residualEstimate) acknowledged(now time.Duration) {
	g.awaitsReply, g.parentRoundTrip = false, now-g.reportedAt
}

// roundTrip returns the time of a message from the parent, at the root from this peer, to the farthest peer
// of the subtree and back, 0 if it is unknown.
func (g *residualEstimate) roundTrip() time.Duration {
	longest := time.Duration(0)
	for _, c := range g.children {
		longest = max(longest, c.roundTrip)
	}
	return g.parentRoundTrip + longest
}

// validSeconds converts received seconds to a duration. Invalid values give 0, which means unknown.
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
	return !slices.ContainsFunc(g.children, func(c childEstimate) bool { return !c.atEnd })
}

// report returns the message to the parent, and whether one is due. bound is the square of the residual at
// which the run ends, NaN if unknown. Only one report is in flight at a time. So a slow edge carries the
// newest estimate, and reports do not queue in front of the messages of a snapshot.
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
