package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// keepers is the state of the decisions about who leads the run. A process that most keepers do not follow can begin no
// epoch. If the run is cut in two, at most one side goes on.
type keepers struct {
	kept      bool          // there are keepers; else only this process can lead the run
	term      register.Term // the newest; zero without keepers
	deciding  bool          // a proposal is under way
	due       bool          // an epoch begins when the next term is decided
	undecided int           // ticks of the proposal that is under way
	cutOff    bool          // most keepers are out of reach, or another process leads the run

	inherits bool // another process led the run before

	returning   bool // peers that lost their leader have not come here yet
	returnTicks int  // since this process leads
	waiting     bool // the next epoch waits for the end of a time step
	waitTicks   int  // since then, or since the last block came

	copies []End // of blocks of peers that may have been lost with the process that led the run before
	passed int   // newest time step of which copies were passed on to other keepers
}

// held reports whether recovery has to wait for a decision, for peers that return or for the end of a time step.
func (r *run) held() bool { return r.due || r.returning || r.waiting }

// keeps reports whether the run, which has not failed, is to survive the loss of its leader.
func (r *run) keeps() bool { return r.Lasting() && r.failure == nil }

// askKeepers asks peers in other processes to be keepers, those on other hosts first, until there are enough.
func (r *run) askKeepers() {
	if !r.keeps() {
		return
	}
	left := r.Keepers - 1
	hosts, taken := map[string]bool{r.self.host: true}, map[process]bool{r.self: true}
	for _, m := range r.members {
		if m.asked && !m.declined {
			hosts[m.join.Host], taken[processOf(m)] = true, true
			left--
		}
	}
	for _, other := range []bool{true, false} { // hosts
		for _, m := range r.members {
			if left > 0 && m.conn != 0 && !m.declined && !taken[processOf(m)] && !(other && hosts[m.join.Host]) {
				hosts[m.join.Host], taken[processOf(m)] = true, true
				m.asked = true
				left--
				r.send(m, rendezvous.Keep{Listener: r.Identity.Listener()})
			}
		}
	}
}

// processOf identifies that of a peer.
func processOf(m *member) process { return joined(&m.join) }

// joined identifies the process that sent a join message.
func joined(j *rendezvous.Join) process { return process{j.Host, j.Pid, j.PidSpace} }

// nextEpoch begins the next epoch, after a decision of the keepers if there are any.
func (r *run) nextEpoch() {
	switch r.active = true; {
	case r.awaitsSteps() || r.failure != nil:
	case !r.kept:
		r.beginEpoch()
	default:
		r.due = true
		r.propose()
	}
}

// propose proposes a term if one is due or the keepers are to change, unless a proposal is under way.
func (r *run) propose() {
	if r.deciding || r.returning || !r.keeps() || !r.openRegister() {
		return
	}
	want := register.Term{
		Number: r.term.Number + 1, Epoch: r.epoch, Leader: r.term.Leader, Keepers: r.keeperAddresses(),
	}
	if r.due {
		want.Epoch++
	} else if slices.Equal(want.Keepers, r.term.Keepers) {
		return
	}
	r.deciding, r.undecided = true, 0
	r.add(propose{r.term, want})
}

// openRegister makes this process the only keeper when the first peer has become one. It returns false before.
func (r *run) openRegister() bool {
	if r.kept {
		return true
	}
	i := slices.IndexFunc(r.members, func(m *member) bool { return m.keeps != "" && m.conn != 0 })
	if i < 0 {
		return false
	}
	address := rendezvous.Ways(r.members[i].here, r.listens)
	r.kept, r.term = true, register.Term{Number: 1, Epoch: r.epoch, Leader: address, Keepers: []string{address}}
	r.add(openRegister{r.term})
	return true
}

// keeperAddresses returns the wanted keepers: this process and peers that keep, an odd number.
func (r *run) keeperAddresses() []string {
	out := []string{r.term.Leader}
	for _, m := range r.members {
		if m.keeps != "" && m.conn != 0 && len(out) < r.Keepers && !slices.Contains(out, m.keeps) {
			out = append(out, m.keeps)
		}
	}
	return out[:len(out)-(len(out)+1)%2]
}

// termDecided handles the answer to a proposal.
func (r *run) termDecided(t register.Term) {
	r.deciding = false
	switch {
	case r.failure != nil:
		return
	case t.Number == 0:
		return // the run ends
	case t.Leader != r.term.Leader:
		r.depose(fmt.Sprintf("another process leads the run now: %s fetches the answer", r.attachCommand(t.Leader)))
		return
	}
	r.term = t
	r.reportEpoch()
	r.info("keepers agreed", "term", t.Number, "epoch", t.Epoch, "keepers", t.Keepers)
	for _, m := range r.members {
		if m.conn != 0 {
			r.send(m, rendezvous.Term{Term: t})
		}
	}
	for _, s := range r.spares {
		r.tellSpare(s)
	}
	r.record()
	if len(t.Keepers) > 1 {
		r.add(note{fmt.Sprintf("keepers of the run: %s. If the first one is lost, another one leads the run: %s\n",
			strings.Join(rendezvous.FirstWays(t.Keepers), " "), r.attachCommand(t.Keepers[1:]...))})
	}
	if r.due && t.Epoch > r.epoch {
		r.due = false
		r.beginEpoch()
	}
	r.propose()
}

// record is what a keeper needs to lead the run, with losses as values.
type record struct {
	rendezvous.Record
	losses []Loss
}

// record sends the keepers what they need to lead the run.
func (r *run) record() {
	if !r.kept {
		return
	}
	rec := &record{Record: rendezvous.Record{
		Term: r.term, Run: r.name, Key: r.key, Spec: r.Spec, ElapsedMS: r.now.Milliseconds(), Checkpoint: r.Checkpoint,
	}}
	for _, l := range r.losses {
		rec.losses = append(rec.losses, *l)
	}
	for _, m := range r.members {
		if m.conn != 0 && slices.Contains(r.term.Keepers, m.keeps) {
			r.send(m, rec)
			r.passOn(m)
		}
	}
}

// depose ends the run in this process, which must not lead it any more.
func (r *run) depose(why string) {
	r.cutOff = true
	r.fail(failure{exited, -1, why})
}

// returnTime bounds the time that peers take to find the process that leads after the loss of the leader. They find it
// at once, and those on another host need some round trips.
func (r *run) returnTime() time.Duration { return 2 * r.Suspect }

// checkKeepers looks, at every tick, for a decision, peers and ends of time steps that do not come.
func (r *run) checkKeepers() {
	r.checkSteps()
	if r.returning {
		if r.returnTicks++; r.returnTicks > r.ticks(r.returnTime()) {
			r.lead()
		}
	}
	if !r.deciding || !r.due || r.failure != nil {
		return
	}
	if r.undecided++; r.undecided > r.ticks(r.PeerTimeout) {
		r.depose(fmt.Sprintf("most keepers were out of reach for %v (--peer-timeout). %s", r.PeerTimeout, r.elsewhere()))
	}
}

// elsewhere says where a run may go on from which this process was cut off.
func (r *run) elsewhere() string {
	return "The run may go on there: " + r.attachCommand(r.term.Keepers[1:]...)
}

// attachCommand returns the command that attaches to processes, by all their addresses: the first may be on a cable that is cut.
func (r *run) attachCommand(to ...string) string {
	command := "obstacle attach"
	for _, address := range to {
		command += " " + spelling.Word(address)
	}
	return strings.TrimSpace(command + " " + r.AttachFlags)
}
