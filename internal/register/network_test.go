package register

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
)

// process is one of the simulated network. It calls the package as doc.go says.
type process struct {
	keeper   *Keeper
	proposal *Proposal
	call     *operation // of proposal
	lost     bool
	rounds   map[int]int // by the number of the base: the highest round used
}

// operation is a call of compare-and-swap, and its outcome.
type operation struct {
	base, want Term
	begin, end int64 // steps of the network; end is 0 unless there is a result
	result     Term
}

// network delivers messages between processes in any order. It loses and repeats messages, loses processes, and
// abandons proposals. After every step it checks that the register is safe.
type network struct {
	t         require.TestingT
	choose    func(n int) int // returns a number below n
	now       int64
	processes map[string]*process
	wire      []Message
	calls     []*operation

	proposed map[int][]Term                     // by number
	decided  []Term                             // index 0 has term 1
	votes    map[int]map[Ballot]map[string]bool // by number: the keepers that accepted
}

var addresses = []string{"a", "b", "c", "d", "e", "f", "g"}

func newNetwork(t require.TestingT, choose func(n int) int) *network {
	w := &network{t: t, choose: choose, processes: map[string]*process{}, proposed: map[int][]Term{},
		votes: map[int]map[Ballot]map[string]bool{}}
	first := w.term(addresses)
	first.Number, w.decided = 1, nil
	w.decided = append(w.decided, first)
	w.proposed[1] = []Term{first}
	for _, a := range addresses {
		known := Term{}
		if first.keptBy(a) {
			known = first
		}
		w.processes[a] = &process{keeper: NewKeeper(a, known), rounds: map[int]int{}}
	}
	return w
}

// term returns a term with up to five keepers, and an epoch that no other term has.
func (w *network) term(from []string) Term {
	keepers := slices.Clone(from)
	for i := range keepers {
		j := i + w.choose(len(keepers)-i)
		keepers[i], keepers[j] = keepers[j], keepers[i]
	}
	keepers = keepers[:1+w.choose(min(5, len(keepers)))]
	return Term{Epoch: len(w.calls), Leader: keepers[w.choose(len(keepers))], Keepers: keepers}
}

// living returns the addresses of the processes that are not lost.
func (w *network) living() []string {
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return w.processes[a].lost })
}

// step does something at random.
func (w *network) step() {
	w.now++
	a := w.living()[w.choose(len(w.living()))]
	p := w.processes[a]
	switch what := w.choose(90); {
	case what < 60 && len(w.wire) > 0:
		w.deliver(w.take())
	case what < 64 && len(w.wire) > 0:
		w.deliver(w.wire[w.choose(len(w.wire))]) // and again later
	case what < 69 && len(w.wire) > 0:
		w.take()
	case what < 76:
		if p.proposal == nil {
			w.begin(a)
		}
	case what < 84:
		if p.proposal != nil {
			w.send(a, p.proposal.Retry())
		}
	case what < 85:
		w.abandon(p)
	case what < 86:
		w.lose(a)
	default:
		p.keeper.LeaderReached(what == 86)
	}
}

// take removes a message.
func (w *network) take() Message {
	i := w.choose(len(w.wire))
	m := w.wire[i]
	w.wire = slices.Delete(w.wire, i, i+1)
	return m
}

// send sends the messages of a process. At times it is lost or forgets its proposal after some of them.
func (w *network) send(from string, messages []Message) {
	for _, m := range messages {
		if w.choose(150) == 0 {
			w.abandon(w.processes[from])
			w.lose(from)
			return
		}
		w.post(m)
	}
}

func (w *network) post(m Message) {
	if !m.valid() {
		require.Fail(w.t, "a message is not valid", "%+v", m)
	}
	w.observe(m.Base)
	w.wire = append(w.wire, m)
}

// abandon ends the proposal of a process without a result.
func (w *network) abandon(p *process) {
	if p.proposal != nil {
		p.rounds[p.proposal.base.Number] = p.proposal.Round()
	}
	p.proposal, p.call = nil, nil
}

// lose stops a process for ever, unless some term would lose the majority of its keepers.
func (w *network) lose(address string) {
	w.processes[address].lost = true
	for _, number := range slices.Sorted(maps.Keys(w.proposed)) {
		for _, t := range w.proposed[number] {
			alive := 0
			for _, k := range t.Keepers {
				if !w.processes[k].lost {
					alive++
				}
			}
			if alive < t.majority() {
				w.processes[address].lost = false
				return
			}
		}
	}
	w.abandon(w.processes[address])
}

// begin starts a proposal to replace the newest term that the process knows.
func (w *network) begin(address string) {
	p := w.processes[address]
	base := p.keeper.Newest()
	if base.Number == 0 {
		return
	}
	p.call = &operation{base: base, begin: w.now}
	w.calls = append(w.calls, p.call)
	want := w.term(w.living())
	var out []Message
	p.proposal, out = NewProposal(address, base, want, p.rounds[base.Number]+1)
	want.Number = base.Number + 1
	p.call.want = want
	w.proposed[want.Number] = append(w.proposed[want.Number], want)
	w.send(address, out)
}

// deliver gives a message to its receiver.
func (w *network) deliver(m Message) {
	p := w.processes[m.To]
	if p.lost {
		return
	}
	before := p.keeper.Newest()
	reply, ok := p.keeper.Step(m)
	if p.keeper.Newest().Number < before.Number {
		require.Fail(w.t, "a keeper went back", "%+v, %+v", p.keeper.Newest(), before)
	}
	w.observe(p.keeper.Newest())
	if ok {
		w.post(reply)
		if reply.Kind == Accepted {
			w.vote(m)
		}
	}
	if p.proposal == nil {
		return
	}
	out := p.proposal.Step(m)
	if result, ok := p.proposal.Result(); ok {
		w.observe(result)
		p.keeper.Adopt(result)
		p.call.result, p.call.end = result, w.now
	}
	w.send(m.To, out)
	if p.call != nil && p.call.end > 0 {
		w.abandon(p)
	}
}

// vote counts a keeper that accepts a value, and notices when that decides it.
func (w *network) vote(m Message) {
	number := m.Value.Number
	if w.votes[number] == nil {
		w.votes[number] = map[Ballot]map[string]bool{}
	}
	if w.votes[number][m.Ballot] == nil {
		w.votes[number][m.Ballot] = map[string]bool{}
	}
	voters := w.votes[number][m.Ballot]
	voters[m.To] = true
	if 2*len(voters) > len(m.Base.Keepers) {
		w.observe(*m.Value)
	}
}

// observe checks a term that somebody takes for decided: it was proposed, no other of its number is decided, and the
// one before it is.
func (w *network) observe(t Term) {
	if t.Number == 0 {
		return
	}
	switch next := len(w.decided) + 1; {
	case t.Number > next:
		require.Fail(w.t, "a number is missing", "%d, not %d", t.Number, next)
	case t.Number == next:
		require.True(w.t, slices.ContainsFunc(w.proposed[next], t.Equal), "%+v was not proposed", t)
		w.decided = append(w.decided, t)
	case !t.Equal(w.decided[t.Number-1]):
		require.Fail(w.t, "two terms of one number are decided", "%+v, %+v", t, w.decided[t.Number-1])
	}
}

// settle ends all faults and all proposals, and delivers what is on its way. Then one process proposes until the term
// that it wants is decided. Its first requests to accept are lost, so that it has to try again.
func (w *network) settle() {
	for _, a := range w.living() {
		w.abandon(w.processes[a])
		w.processes[a].keeper.LeaderReached(false)
	}
	w.choose = func(n int) int { return n - 1 } // no more losses; the last message is the first to arrive
	w.flush()
	knows := slices.DeleteFunc(w.living(), func(a string) bool { return w.processes[a].keeper.Newest().Number == 0 })
	address := knows[int(w.now)%len(knows)]
	p := w.processes[address]
	for range 1 + len(w.decided) {
		w.begin(address)
		call := p.call
		for p.proposal != nil && !p.proposal.asked && len(w.wire) > 0 {
			w.deliver(w.take())
		}
		w.wire = nil
		for range 2 {
			if p.proposal != nil {
				w.send(address, p.proposal.Retry())
				w.flush()
			}
		}
		require.Nil(w.t, p.proposal, "no decision on term %d", call.want.Number)
		if call.result.Equal(call.want) {
			return
		}
	}
	require.Fail(w.t, "the wanted term was not decided")
}

// flush delivers all messages, and those that they cause.
func (w *network) flush() {
	for len(w.wire) > 0 {
		w.now++
		w.deliver(w.take())
	}
}
