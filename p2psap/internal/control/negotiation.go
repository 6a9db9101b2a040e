package control

import (
	"fmt"
	"slices"
	"strings"
)

// Negotiation is the exchange of proposals about a change of composition, as one end of a session
// sees it. A change begins when both ends' proposals are there and do not differ.
type Negotiation struct {
	Mine, Theirs Proposal // Cause 0: none
	Agreed       bool     // the change will take place
	DrainFirst   bool     // both ends report that everything of the old epoch has arrived, before they begin the new one
	Switched     bool     // this end has begun the new epoch and reported it
}

// Verdict is how an end handles a proposal of the other end.
type Verdict uint8

// The verdicts.
const (
	Ignore Verdict = iota // it is void, or this end's proposal takes precedence
	Refuse                // the other end must not send it now
	Take                  // it is the other end's proposal
	Yield                 // likewise, and it takes precedence over everything under way
	Resume                // it collided with this end's proposal to move
)

// Judge returns the verdict on a proposal that arrives in an epoch. Proposals may collide: one to
// leave a rail takes precedence over a user's, and a user's over a monitor's. Of two equal ones that
// of the end with the higher name does, but two users' proposals belong together. higher reports
// that this end has the higher name.
func (g *Negotiation) Judge(a *Proposal, epoch uint8, higher bool) Verdict {
	mine, moves := g.Mine.Cause, a.Cause == CauseRail
	switch {
	case moves && g.Switched && a.Epoch == epoch:
		return Ignore // this end had begun the new epoch before the proposal came
	case g.Switched || g.Agreed && !(moves && g.DrainFirst) || a.Epoch != epoch+1:
		return Refuse
	case moves && mine == CauseRail && higher:
		return Ignore
	case moves:
		return Yield
	case a.Cause == CauseUser && mine == CauseRail:
		return Resume
	case a.Cause == CauseMonitor && (mine == CauseUser || mine == CauseRail || mine == CauseMonitor && higher):
		return Ignore
	case a.Cause == CauseWithdraw && g.Answered():
		return Take
	case a.Cause == CauseWithdraw:
		return Refuse
	case g.Theirs.Cause != 0 || a.Cause == CauseAccept && mine != CauseMonitor && mine != CauseRail:
		return Refuse
	}
	return Take
}

// Answered reports whether this end has answered a monitor's proposal of the other end, which decides
// whether the change takes place. Messages go on in the old epoch meanwhile.
func (g *Negotiation) Answered() bool {
	return g.Mine.Cause == CauseAccept && g.Theirs.Cause == CauseMonitor && !g.Agreed
}

// Holds reports whether new messages wait for the next epoch. A monitor's proposal does not stop
// messages before both ends have agreed.
func (g *Negotiation) Holds() bool {
	return g.Agreed || g.Mine.Cause == CauseUser || g.Mine.Cause == CauseRail
}

// Differences lists what keeps the two ends from changing; "" for nothing.
func (g *Negotiation) Differences() string {
	mine, theirs := &g.Mine, &g.Theirs
	var d []string
	if mine.Mode != theirs.Mode {
		d = append(d, fmt.Sprintf("change of mode: this end wants %v, the peer %v", mine.Mode, theirs.Mode))
	}
	if mine.Reason != "" {
		d = append(d, "this end cannot change: "+mine.Reason)
	}
	if theirs.Reason != "" {
		d = append(d, "the peer says: "+theirs.Reason)
	}
	switch {
	case d != nil:
	case !slices.Equal(mine.Protocols, theirs.Protocols):
		d = append(d, CompositionsDiffer(mine.Protocols, theirs.Protocols))
	case mine.Network != theirs.Network || mine.Round != theirs.Round:
		d = append(d, fmt.Sprintf("network: this end has %v, the peer %v", mine.Network, theirs.Network))
	case mine.Fingerprint != theirs.Fingerprint:
		d = append(d, LayoutsDiffer(mine.Fingerprint, theirs.Fingerprint))
	}
	return strings.Join(d, "; ")
}

// CompositionsDiffer returns the reason of two ends with different micro-protocols.
func CompositionsDiffer(mine, theirs []string) string {
	return fmt.Sprintf("composition: this end has %s, the peer %s", strings.Join(mine, "+"), strings.Join(theirs, "+"))
}

// LayoutsDiffer returns the reason of two ends with different composites of the same micro-protocols.
func LayoutsDiffer(mine, theirs uint64) string {
	return fmt.Sprintf("header layout or versions of micro-protocols: this end has %016x, the peer %016x", mine, theirs)
}
