package launch

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// recoverStep is the mode of a run in time whose peers may be lost.
const recoverStep = "step"

// Recovery returns what a run does when a peer is lost, and the reason, from the value of --recover. The mode is one of
// these values, or "step". inTime states that the problem has time steps.
func Recovery(recover string, inTime bool, spares int) (mode, why string) {
	switch {
	case recover != rendezvous.RecoverLocal && recover != rendezvous.RecoverExact:
		return rendezvous.RecoverOff, "--recover off: the run ends when a peer is lost"
	case inTime:
		mode, why = recoverStep, "a lost peer is replaced, and all begin the time step again that was in progress"
	case recover == rendezvous.RecoverExact:
		mode, why = rendezvous.RecoverExact, "--recover exact: a lost peer is replaced, and all go back to the newest iterate of which "+
			"each has a copy with another one"
	default:
		mode, why = rendezvous.RecoverLocal, "a lost peer is replaced, and its block solved again from the values around it"
	}
	if spares > 0 {
		why += fmt.Sprintf("; spare processes that wait: %d", spares)
	}
	return mode, why
}

// onLoss returns what the run does when a peer is lost, and the reason.
func (r *run) onLoss() (mode, why string) { return Recovery(r.Recover, r.inTime, r.Spares) }

// Loss describes the loss of a peer from which the run went on.
type Loss struct {
	Rank int    `json:"rank"`
	Why  string `json:"why"`
	// Detected and Recovered are seconds since the first relaxation. Recovered is when all peers relax again; it is null
	// if the peer was lost again before.
	Detected  float64         `json:"detected"`
	Recovered nullable.Number `json:"recovered"`
	By        string          `json:"by"`     // the process that took the place of the lost one
	Method    string          `json:"method"` // that repaired the block; empty: it begins with starting values
	Iterates  uint64          `json:"iterates"`
	Residual  nullable.Number `json:"relative_residual"` // of the problem on the lost block
	Repair    float64         `json:"repair_seconds"`
	Refused   int             `json:"refused_values"` // values beside the block that were outside the obstacles
	// From is the iterate from which all peers went on, with --recover exact; 0: from the start. It is null otherwise.
	From nullable.Number `json:"from_iterate"`
	// FromStep is the time step after whose end all peers went on; 0: from the start. It is null in a stationary run.
	FromStep nullable.Number `json:"from_step"`
	// Unbound is the reason why the repair may have raised the error; it is empty if it has not.
	Unbound string `json:"unbound,omitempty"`

	sweep uint64 // of the run, when the peer was lost
}

// Bounds of recovery.
const (
	maxFruitless = 3   // losses of a rank without a new sweep of the run
	maxLosses    = 1e4 // of a run
)

// recovery is the state of the epochs of a run. Epoch 0 begins with Start; every loss begins the next one.
type recovery struct {
	epoch       int
	settled     int              // newest epoch in which all peers have relaxed
	idleTicks   int              // ticks without an event of the epoch
	active      bool             // some peer does not relax yet in this epoch
	losses      []*Loss          // of the run
	open        []*Loss          // from which the run has not recovered
	fruitless   map[int]int      // losses of a rank since the run has made a sweep
	panicked    map[int]bool     // ranks at which the code of the user's iteration has panicked
	after       int              // time steps that are complete at the beginning of the epoch
	newest      uint64           // sweeps of the run at the last loss
	spares      []*member        // that wait
	silentHosts map[string]bool  // on which a peer has fallen silent, in this recovery
	banned      map[process]bool // took part and sent what no peer of the run sends: they must not join again
	preferred   *member          // whose process takes the place of a lost peer; nil: the one that runs the fewest
	faces       []*member        // from which values are awaited
	unvalued    []problem.Box    // boxes without values, at the beginning of the epoch
	around      []surroundings   // what survivors have sent of their boxes beside the lost ones

	resumption *resumption // of the epoch; nil: not decided yet
	beginning  *beginning  // of an epoch; see begun
	cut        int         // epoch for which recut was called
}

// surroundings are the values that a survivor has beside the holes.
type surroundings struct {
	box    problem.Box
	values []float64
}

// lose handles the loss of a peer.
func (r *run) lose(m *member, f failure) {
	if m.lost {
		return
	}
	if r.early() {
		r.refusal = f.text
	}
	if r.joining && r.byHand(m) && !r.Recovers() && r.failure == nil {
		r.dismiss(m, f.text)
		return
	}
	if !r.Recovers() || r.failure != nil {
		m.gone = true
		r.fail(f)
		return
	}
	if r.inTime && r.steps.over {
		m.gone = true // every step has arrived
		return
	}
	if why := r.unrecoverable(m); why != "" {
		m.gone = true
		if len(r.term.Keepers) > 1 && r.survivors(m) == 0 {
			r.depose("no peer can be reached. " + r.elsewhere())
			return
		}
		r.ending = why
		r.fail(f)
		return
	}
	for _, q := range r.lostWith(m, f) {
		q.lost = true
		l := &Loss{
			Rank: q.rank, Why: f.text, Detected: r.now.Seconds(), Recovered: nullable.NaN(),
			Residual: nullable.NaN(), From: nullable.NaN(), FromStep: nullable.NaN(), sweep: r.sweeps(),
		}
		then := ": recovering"
		if r.joining && r.byHand(q) {
			then = "; the run waits for a replacement"
		}
		r.warn(f.text+then, "rank", q.rank, "epoch", r.epoch+1)
		r.losses, r.open = append(r.losses, l), append(r.open, l)
		r.change(rankLost(q.rank))
		r.add(retire{q})
		r.members[q.rank] = r.successor(q)
		if f.weight == silent && q.child == 0 {
			if r.silentHosts == nil {
				r.silentHosts = map[string]bool{}
			}
			r.silentHosts[q.join.Host] = true
		}
	}
	if !r.early() {
		r.change(Recovering)
	}
	r.reportEpoch()
	r.nextEpoch()
}

// unrecoverable counts the loss of a peer and returns why the run cannot go on without it, "" if it can.
func (r *run) unrecoverable(m *member) string {
	now := r.sweeps()
	left, valued := r.survivors(m), m.valued
	for _, q := range r.members {
		if r.Parts > 1 && q != m && q.valued && !q.gone && processOf(q) == processOf(m) {
			left, valued = left-1, true
		}
	}
	if now > r.newest {
		clear(r.fruitless)
	}
	r.newest = max(r.newest, now)
	if r.fruitless == nil {
		r.fruitless = map[int]int{}
	}
	r.fruitless[m.rank]++
	switch {
	case left == 0 && valued && !r.inTime && !r.exact():
		return "no peer is left that has values"
	case r.fruitless[m.rank] > maxFruitless:
		return fmt.Sprintf("rank %d was lost %d times without a sweep between", m.rank, r.fruitless[m.rank])
	case len(r.losses) >= maxLosses:
		return fmt.Sprintf("%d peers were lost", len(r.losses))
	}
	return ""
}

// panicsAgain records that the code of the user's iteration has panicked at a rank, and reports whether it had there before: then it
// would in a third process, too. One peer alone cannot end the run by such a report.
func (r *run) panicsAgain(rank int) (again bool) {
	if again = r.panicked[rank]; r.panicked == nil {
		r.panicked = map[int]bool{}
	}
	r.panicked[rank] = true
	return again
}

// survivors returns how many peers have values, without one that is lost.
func (r *run) survivors(lost *member) (n int) {
	for _, m := range r.members {
		if m != lost && m.valued && !m.gone {
			n++
		}
	}
	return n
}

// sweeps returns the largest number of sweeps of a peer.
func (r *run) sweeps() (most uint64) {
	for _, m := range r.members {
		most = max(most, m.sweep)
	}
	return most
}

// beginEpoch begins the next epoch with the peers that are left, and replaces those that are not.
func (r *run) beginEpoch() {
	r.epoch++
	r.active, r.unvalued, r.around, r.faces, r.resumption = true, nil, nil, nil, nil
	if r.stopping {
		r.ticksLeft = r.ticks(r.stopTimeout())
	}
	if r.inTime {
		r.goFromStep()
	}
	r.beat.Residual = math.NaN() // until a peer reports that of the new epoch
	r.undoMoves()
	lost := r.lostRanks()
	for _, m := range r.members {
		if m.gone { // it had sent its block, which is the one of the epoch before
			r.add(retire{m})
			m = m.successor()
			r.members[m.rank] = m
		}
		m.assigned, m.ready = false, false
		m.result, m.received = nil, 0
		if !m.valued {
			r.unvalued = append(r.unvalued, m.box)
		}
		if m.conn != 0 {
			r.send(m, rendezvous.Epoch{Epoch: r.epoch, Lost: lost})
		}
	}
	r.beginMoves()
	r.askAgain()
	for _, m := range r.members {
		if m.conn == 0 && !m.awaited && !r.waitsFor(m) {
			r.replace(m)
		}
	}
	if !r.inTime && !r.exact() && !r.moved() {
		r.askForFaces()
	}
	r.advance()
}

// advance does what the epoch can do next, after every event.
func (r *run) advance() {
	if !r.active || r.held() {
		return
	}
	r.idleTicks = 0
	valued := true
	for _, m := range r.members {
		if m.conn == 0 || m.listens != r.epoch || m.control == "" && r.early() {
			return
		}
		valued = valued && (m.valued || r.inTime)
	}
	if r.joining && !r.allJoined() {
		return
	}
	if r.moved() && r.cut != r.epoch && !r.early() {
		r.recut()
	}
	if r.exact() && !r.awaitsHandover() && !r.early() {
		r.decideResumption()
	}
	if len(r.faces) > 0 || r.exact() && (r.awaitsHandover() || r.failure != nil) {
		return
	}
	ready := true
	var now *roster
	for _, m := range r.members {
		if h := r.handoverTo(m); h != nil && !h.known {
			ready = false // the others build their blocks meanwhile
			continue
		}
		if !m.assigned && (valued || !m.valued || m.idle || r.exact()) && !r.resumption.lacks(m) {
			if now == nil {
				var err error
				if now, err = r.roster(); err != nil {
					r.fail(failure{exited, -1, err.Error()})
					return
				}
			}
			r.assign(m, now)
		}
		ready = ready && m.ready
	}
	if ready {
		if r.early() {
			r.beginRelaxation()
		}
		r.recovered()
	}
}

// assign sends a peer its work of the epoch.
func (r *run) assign(m *member, now *roster) {
	w := &workload{assign: r.assignment(m, r.news(m, now), 0), n: r.N, box: m.box}
	m.assigned, m.listed = true, r.epoch
	a := &w.assign
	if !m.informed {
		m.informed, w.problem = true, r.ProblemSpec.Marshal()
		a.ProblemBytes = int64(len(w.problem))
	}
	a.Sweeps, a.After = m.sweep, r.after
	if now.config.Scheme.Lockstep() {
		a.Sweeps = r.begun().sweeps
	}
	if !r.exact() { // its state has the factor
		a.Omega = r.begun().omega
	}
	if r.MaxSweeps > 0 && !r.inTime { // the bound holds in each time step
		a.MaxSweeps = max(1, r.MaxSweeps-min(r.MaxSweeps, r.begun().sweeps))
	}
	if r.MaxTime > 0 {
		a.MaxTime = max(time.Millisecond, r.MaxTime-r.now)
	}
	switch {
	case r.early(), !r.inTime && !r.exact() && r.handoverTo(m) == nil && r.survivors(nil) == 0: // nobody has values yet
		a.Initial, w.initial = r.Initial != nil, r.Initial
		a.Earlier, a.After = r.Earlier, r.After
	case r.inTime:
		a.Initial, w.newest = true, true
	case r.exact():
		r.resumeWith(w, m)
	case r.handoverTo(m) != nil:
		a.Initial, w.block = true, r.handoverTo(m).values
	case !m.valued || !m.hole.Empty():
		a.Repair = &rendezvous.Repair{Holes: r.unvalued, Tolerance: r.repairTolerance()}
		for _, s := range r.around {
			a.Repair.Around = append(a.Repair.Around, s.box)
			w.around = append(w.around, s.values...)
		}
	}
	r.send(m, w)
}

// coarsest bounds the tolerance of a repair.
const coarsest = 1e-2

// repairTolerance returns the tolerance of a repair. There is no gain from a residual far below that of the run.
func (r *run) repairTolerance() float64 {
	if now := r.residual; now < coarsest {
		return max(r.Tolerance, now)
	}
	return coarsest
}

// receiveRecovery handles a message of a peer that enters an epoch. It returns false for another message.
func (r *run) receiveRecovery(m *member, msg rendezvous.Message) bool {
	if !r.active {
		return false
	}
	switch msg := msg.(type) {
	case rendezvous.Listen:
		if m.control == "" {
			m.since = msg.Epoch
			r.info("peer listens", "rank", m.rank, "control", msg.Control)
		}
		m.entered(&msg)
	case rendezvous.Repaired:
		if msg.Epoch == r.epoch {
			m.valued = true
			for _, l := range r.open {
				if l.Rank == m.rank {
					l.Method, l.Iterates, l.Residual = msg.Method, msg.Iterates, msg.Residual
					l.Repair, l.Unbound, l.Refused = msg.Seconds, msg.Unbound, msg.Refused
				}
			}
		}
	case rendezvous.Ready:
		if msg.Epoch == r.epoch {
			m.ready, m.valued = true, !r.early()
		}
	default:
		return false
	}
	r.advance()
	return true
}

// receiveFaces handles the values that a survivor has beside the holes.
func (r *run) receiveFaces(m *member, number int, values []float64) {
	i := slices.Index(r.faces, m)
	if i < 0 || number != -r.epoch {
		return // of a former epoch
	}
	if len(values) == 0 { // it had not begun to relax
		r.info("a peer has no values yet: its block is repaired, too", "rank", m.rank)
		m.valued = false
		r.nextEpoch()
		return
	}
	if err := repair.NewFaces(r.Problem, r.unvalued).Add(r.heldBy(m), values); err != nil {
		r.expel(m, fmt.Errorf("it sent values that no block can be repaired from: %w", err))
		return
	}
	r.faces = slices.Delete(r.faces, i, i+1)
	r.around = append(r.around, surroundings{r.heldBy(m), values})
	r.advance()
}

// recovered ends a recovery.
func (r *run) recovered() {
	r.active, r.settled = false, r.epoch
	r.change(Solving)
	at := r.now.Seconds()
	for _, l := range r.open {
		l.Recovered = nullable.Number(at)
		r.change(rankBack(l.Rank))
	}
	if n := len(r.open); n > 0 {
		r.info("recovered: all peers relax again", "epoch", r.epoch, "seconds", at-r.open[n-1].Detected)
	}
	r.open = nil
	clear(r.silentHosts)
	r.endMoves()
	r.reportEpoch()
	for _, m := range r.members {
		m.attempts = 0
	}
	r.askKeepers()
	r.record()
}

// leastRepair is the least bound of the time of a repair. It is the time that the run has taken if that is longer.
const leastRepair = time.Minute

// checkRecovery looks, at every tick, for replacements that do not come and for peers that do not enter the epoch.
func (r *run) checkRecovery() {
	if r.held() {
		return
	}
	r.checkReplacements()
	if !r.active || r.failure != nil || r.early() {
		return
	}
	limit := r.ticks(2*r.PeerTimeout + StopTime)
	var late *member
	for _, m := range r.members {
		switch {
		case m.conn == 0:
			return
		case m.assigned && !m.valued:
			limit = max(limit, r.ticks(leastRepair), r.ticks(r.beat.Elapsed))
			late = m
		case late == nil && (m.listens != r.epoch || slices.Contains(r.faces, m) || r.resumption.awaits(m) ||
			r.handoverTo(m) != nil && (r.awaits(r.handoverTo(m)) || r.resumption.lacks(m)) ||
			m.assigned && !m.ready && !r.awaitsHandover()): // else it waits for a peer that has no values yet
			late = m
		}
	}
	if r.idleTicks++; r.idleTicks > limit && late != nil {
		r.idleTicks = 0
		weight := silent
		if r.handoverTo(late) != nil { // it may be its former peer that is late, and is another process
			weight = reported
		}
		r.lose(late, failure{weight, late.rank, fmt.Sprintf("%s has not entered epoch %d in time", late, r.epoch)})
	}
}
