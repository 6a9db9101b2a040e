package control

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// When the proposals of both ends are in flight at once, the two verdicts fit together: one end's proposal is
// ignored and the other's taken, or both are taken and belong together.
func TestProposalsCollide(t *testing.T) {
	const epoch = 7
	for _, low := range []Cause{CauseUser, CauseMonitor, CauseRail} {
		for _, high := range []Cause{CauseUser, CauseMonitor, CauseRail} {
			t.Run(fmt.Sprint(low, " and ", high), func(t *testing.T) {
				a := Negotiation{Mine: Proposal{Cause: low, Epoch: epoch + 1}}
				b := Negotiation{Mine: Proposal{Cause: high, Epoch: epoch + 1}}
				atLow, atHigh := a.Judge(&b.Mine, epoch, false), b.Judge(&a.Mine, epoch, true)
				switch {
				case low == CauseUser && high == CauseUser:
					require.Equal(t, [2]Verdict{Take, Take}, [2]Verdict{atLow, atHigh})
				case low == CauseRail && high == CauseUser:
					require.Equal(t, [2]Verdict{Resume, Yield}, [2]Verdict{atLow, atHigh})
				case low == CauseUser && high == CauseRail:
					require.Equal(t, [2]Verdict{Yield, Resume}, [2]Verdict{atLow, atHigh})
				default:
					require.NotEqual(t, atLow == Ignore, atHigh == Ignore, "%v and %v", atLow, atHigh)
					require.True(t, atLow != Refuse && atHigh != Refuse)
					if atHigh == Ignore {
						require.True(t, high != CauseMonitor || low == CauseMonitor, "a monitor takes no precedence")
					}
				}
			})
		}
	}
}

// Proposals for another epoch, second proposals and answers to nothing are refused.
func TestProposalsOutOfTurn(t *testing.T) {
	const epoch = 7
	user := Proposal{Cause: CauseUser, Epoch: epoch + 1}
	for what, c := range map[string]struct {
		g Negotiation
		a Proposal
	}{
		"of the present epoch":   {Negotiation{}, Proposal{Cause: CauseUser, Epoch: epoch}},
		"of a later epoch":       {Negotiation{}, Proposal{Cause: CauseUser, Epoch: epoch + 2}},
		"a second one":           {Negotiation{Theirs: user}, user},
		"an answer to nothing":   {Negotiation{}, Proposal{Cause: CauseAccept, Epoch: epoch + 1}},
		"an answer to a user":    {Negotiation{Mine: user}, Proposal{Cause: CauseAccept, Epoch: epoch + 1}},
		"after an agreement":     {Negotiation{Mine: user, Theirs: user, Agreed: true}, user},
		"a move after agreement": {Negotiation{Agreed: true}, Proposal{Cause: CauseRail, Epoch: epoch + 1}},
		"after the switch":       {Negotiation{Switched: true}, user},
	} {
		require.Equal(t, Refuse, c.g.Judge(&c.a, epoch, true), what)
	}
	move := Proposal{Cause: CauseRail, Epoch: epoch + 1}
	g := Negotiation{Mine: user, Theirs: user, Agreed: true, DrainFirst: true}
	require.Equal(t, Yield, g.Judge(&move, epoch, true), "nothing has been switched yet")
	g.Switched, move.Epoch = true, epoch
	require.Equal(t, Ignore, g.Judge(&move, epoch, true), "sent before the other end knew of the switch")
}
