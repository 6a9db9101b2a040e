package register

import (
	"cmp"
	"fmt"
	"slices"
)

// Ballot identifies one attempt of one process to decide a term. Ballots are ordered by round, then by proposer. The
// zero ballot is lower than all others.
type Ballot struct {
	Round    int    `json:"round"`    // from 1
	Proposer string `json:"proposer"` // address
}

func (b Ballot) less(c Ballot) bool {
	return cmp.Or(cmp.Compare(b.Round, c.Round), cmp.Compare(b.Proposer, c.Proposer)) < 0
}

// valid reports whether a process may have made the ballot. The zero ballot is not valid.
func (b Ballot) valid() bool { return b.Round >= 1 && b.Round <= maxNumber && b.Proposer != "" }

// Kind says what a message means. The zero Kind is not valid.
type Kind int

// The kinds of messages. Proposals send Prepare, Accept and Decided. Keepers reply with the others, or with Decided.
const (
	Prepare  Kind = iota + 1 // asks for a promise to ignore lower ballots
	Promise                  // gives it, and states the accepted value of the highest ballot
	Accept                   // asks to accept a value
	Accepted                 // states that the value of the ballot was accepted
	Refuse                   // states that nothing was promised or accepted
	Decided                  // states the newest decided term
)

// kinds has the text of each kind.
var kinds = [...]string{Prepare: "prepare", Promise: "promise", Accept: "accept", Accepted: "accepted",
	Refuse: "refuse", Decided: "decided"}

// String returns the text of the kind.
func (k Kind) String() string {
	if k < Prepare || k > Decided {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kinds[k]
}

// MarshalText returns the text of a valid kind.
func (k Kind) MarshalText() ([]byte, error) {
	if k < Prepare || k > Decided {
		return nil, fmt.Errorf("unknown kind of message %d", int(k))
	}
	return []byte(kinds[k]), nil
}

// UnmarshalText sets the kind to that of a text.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kinds[:], string(text))
	if i < int(Prepare) {
		return fmt.Errorf("unknown kind of message %q", text)
	}
	*k = Kind(i)
	return nil
}

// Message is what processes send to each other. It is about the decision on the term after Base.
type Message struct {
	Kind Kind   `json:"kind"`
	From string `json:"from"` // address of the sender
	To   string `json:"to"`   // address of the receiver
	// Base is the newest decided term that the sender knows. In messages of a Proposal other than Decided it is the
	// term that the Proposal replaces.
	Base Term `json:"base"`
	// Ballot is that of the request, also in Promise and Accepted. In Refuse it is the promised one that prevents
	// the request, or zero if the leader is reached or the sender is not a keeper. In Decided it is zero.
	Ballot Ballot `json:"ballot,omitzero"`
	Last   Ballot `json:"last,omitzero"`   // in Promise: the highest ballot of which the sender accepted a value
	Value  *Term  `json:"value,omitempty"` // in Promise: that value. In Accept: the proposed one
}

// valid reports whether a process that follows the protocol may have sent the message.
func (m *Message) valid() bool {
	if m.From == "" || m.To == "" || Validate(m.Base) != nil {
		return false
	}
	switch m.Kind {
	case Prepare:
		return m.Ballot.valid() && m.Ballot.Proposer == m.From
	case Accept:
		return m.Ballot.valid() && m.Ballot.Proposer == m.From && m.Value != nil && m.Value.follows(m.Base)
	case Promise:
		return m.Ballot.valid() && m.Ballot.Proposer == m.To && m.lastValid()
	case Accepted:
		return m.Ballot.valid() && m.Ballot.Proposer == m.To
	case Refuse:
		return m.Ballot == Ballot{} || m.Ballot.valid()
	}
	return m.Kind == Decided
}

// lastValid reports whether a Promise has both an accepted ballot and its value, or none of them. The accepted ballot
// may be the promised one: a keeper repeats its promise when it gets the request again, also after the proposal's
// next step.
func (m *Message) lastValid() bool {
	if m.Value == nil {
		return m.Last == Ballot{}
	}
	return m.Last.valid() && !m.Ballot.less(m.Last) && m.Value.follows(m.Base)
}
