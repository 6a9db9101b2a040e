package register

// Keeper stores the newest term and votes on the next one: the acceptor of Paxos.
type Keeper struct {
	self    string
	newest  Term // the newest decided term, or the zero Term if none is known
	reached bool // whether the leader of the newest term is reached

	// The open decision on the term after the newest.
	promised Ballot // the highest ballot of a request that was granted
	accepted Ballot // the highest ballot of which a value was accepted
	value    *Term  // that value
}

// NewKeeper returns the keeper of the process with the address self. newest is a decided term. A process that knows
// none gives the zero Term, or any other that is not valid.
func NewKeeper(self string, newest Term) *Keeper {
	k := &Keeper{self: self}
	k.Adopt(newest)
	return k
}

// Newest returns the newest decided term that the keeper knows, or the zero Term if it knows none.
func (k *Keeper) Newest() Term { return k.newest }

// Adopt stores a decided term, which was learnt elsewhere. It ignores terms that are not valid or not newer than the
// newest known one. A term with another leader ends the effect of LeaderReached(true).
func (k *Keeper) Adopt(t Term) {
	if t.Number <= k.newest.Number || Validate(t) != nil {
		return
	}
	k.reached = k.reached && t.Leader == k.newest.Leader
	k.newest = t
	k.promised, k.accepted, k.value = Ballot{}, Ballot{}, nil
}

// LeaderReached sets whether this process reaches the leader of the newest term. While it does, the keeper refuses
// requests of all other processes, so that they cannot replace a leader that works.
func (k *Keeper) LeaderReached(reached bool) { k.reached = reached }

// Step handles a message. It returns a reply to Prepare and Accept. ok reports whether there is a reply.
func (k *Keeper) Step(m Message) (reply Message, ok bool) {
	if m.To != k.self || !m.valid() {
		return Message{}, false
	}
	k.Adopt(m.Base)
	if m.Kind != Prepare && m.Kind != Accept {
		return Message{}, false
	}
	reply = Message{From: k.self, To: m.From, Base: k.newest}
	switch {
	case m.Base.Number < k.newest.Number:
		reply.Kind = Decided
	case !m.Base.Equal(k.newest): // of another run
		return Message{}, false
	case !k.newest.keptBy(k.self), k.reached && m.From != k.newest.Leader:
		reply.Kind = Refuse
	case m.Ballot.less(k.promised):
		reply.Kind, reply.Ballot = Refuse, k.promised
	default:
		k.grant(&m, &reply)
	}
	return reply, true
}

// grant does what a request asks for.
func (k *Keeper) grant(m, reply *Message) {
	k.promised, reply.Ballot = m.Ballot, m.Ballot
	if m.Kind == Prepare {
		reply.Kind, reply.Last, reply.Value = Promise, k.accepted, k.value
		return
	}
	k.accepted, k.value = m.Ballot, m.Value
	reply.Kind = Accepted
}
