package register

import "slices"

// Proposal is an attempt to replace one term: the proposer of Paxos. It ends when the next term is decided, which may
// be that of another process.
type Proposal struct {
	self   string
	base   Term
	want   Term
	ballot Ballot
	seen   int // the highest round in a refusal

	granted []string // keepers that promised or, once proposing, accepted
	last    Ballot   // the highest accepted ballot in the promises
	value   Term     // the value of last, or want
	asked   bool     // whether the value was sent to the keepers

	result Term // the zero Term until a term is decided
}

// NewProposal returns a proposal of the process with the address self to replace base by want, and its first messages.
// base must be decided. The number of want is set to base.Number+1. The first ballot has the given round, or 1 if that
// is less than 1. A process that is not a keeper may propose, too. If self is empty, or base or want is not valid, the
// proposal sends nothing.
func NewProposal(self string, base, want Term, round int) (*Proposal, []Message) {
	want.Number = base.Number + 1
	p := &Proposal{self: self, base: base, want: want, seen: min(max(round, 1), maxNumber+1) - 1}
	return p, p.Retry()
}

// Round returns the round of the newest ballot. The next proposal of this process on the same base must have a higher
// one.
func (p *Proposal) Round() int { return p.ballot.Round }

// Result returns a decided term that is newer than base, and whether there is one yet. If its number is base.Number+1,
// the wanted term was decided if it equals the result, and never will be otherwise. If its number is higher, that is
// not known. A result does not change.
func (p *Proposal) Result() (t Term, ok bool) { return p.result, p.result.Number > 0 }

// Retry begins again with a ballot that is higher than all those seen. It returns nothing if there is a result.
func (p *Proposal) Retry() []Message {
	round := max(p.ballot.Round, p.seen) + 1
	if p.result.Number > 0 || round > maxNumber || p.self == "" || Validate(p.base) != nil || !p.want.follows(p.base) {
		return nil
	}
	p.ballot = Ballot{Round: round, Proposer: p.self}
	p.granted, p.last, p.value, p.asked = nil, Ballot{}, p.want, false
	return p.request(Message{Kind: Prepare})
}

// Step handles a message. It returns the messages of the next phase once a majority of the keepers has replied.
func (p *Proposal) Step(m Message) []Message {
	if p.result.Number > 0 || m.To != p.self || !m.valid() {
		return nil
	}
	if m.Base.Number > p.base.Number {
		p.result = m.Base
		return nil
	}
	if !m.Base.Equal(p.base) || !p.base.keptBy(m.From) {
		return nil
	}
	switch {
	case m.Kind == Refuse:
		p.seen = max(p.seen, m.Ballot.Round)
	case m.Ballot != p.ballot || slices.Contains(p.granted, m.From):
	case m.Kind == Promise && !p.asked:
		return p.promised(&m)
	case m.Kind == Accepted && p.asked:
		return p.accepted(&m)
	}
	return nil
}

// promised counts a promise. A majority of them allows to propose a value: that of the highest accepted ballot, since
// it may have been decided.
func (p *Proposal) promised(m *Message) []Message {
	if m.Value != nil && p.last.less(m.Last) {
		p.last, p.value = m.Last, *m.Value
	}
	p.granted = append(p.granted, m.From)
	if len(p.granted) < p.base.majority() {
		return nil
	}
	p.granted, p.asked = nil, true
	value := p.value
	return p.request(Message{Kind: Accept, Value: &value})
}

// accepted counts a keeper that accepted the value. A majority of them decides it.
func (p *Proposal) accepted(m *Message) []Message {
	p.granted = append(p.granted, m.From)
	if len(p.granted) < p.base.majority() {
		return nil
	}
	p.result = p.value
	var out []Message
	for i, to := range slices.Concat(p.base.Keepers, p.result.Keepers) {
		known := i >= len(p.base.Keepers) && p.base.keptBy(to)
		if to != p.self && !known {
			out = append(out, Message{Kind: Decided, From: p.self, To: to, Base: p.result})
		}
	}
	return out
}

// request returns a message to every keeper.
func (p *Proposal) request(m Message) []Message {
	m.From, m.Base, m.Ballot = p.self, p.base, p.ballot
	var out []Message
	for _, to := range p.base.Keepers {
		m.To = to
		out = append(out, m)
	}
	return out
}
