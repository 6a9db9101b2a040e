package richardson

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// migration is a move of planes across a cut. The peer below the cut proposes it, and the other one grants as
// many planes as it can. The sender of planes then sends on the agreement session: the planes in ascending
// order, its new outermost plane, and in a run with time steps the planes of the start of the step. Later
// halos belong to the moved cut, and their labels count its moves.
//
// Between two peers in lockstep the move takes effect at a fixed iterate: the old owners make the relaxations up
// to it, and the proposer does not pass it without an answer. Otherwise it takes effect when the sender
// processes it.
//
// A peer's box changes only while no snapshot is open there. So the captured blocks of a snapshot lack or
// duplicate planes only if a cut has moved at one end and not yet at the other. Then the numbers of moves in
// the captured halos differ, and the snapshot is void.
type migration struct {
	open        bool
	awaitsGrant bool // not answered yet
	sends       bool // this peer does
	count       int
	iterate     iterate.Iteration
	label       iterate.Iteration // iterate of the sender
	layers      [][]byte          // received
}

// layersOf returns the number of layers sent in a migration of count planes.
func (w *worker) layersOf(count int) int {
	if w.Steps.Total > 0 {
		return 2*count + 1
	}
	return count + 1
}

// planes returns the number of planes of the box.
func (w *worker) planes() int { return w.block.Layout.N[w.block.Layout.Dim-1] }

// promised returns the number of planes that open migrations will send or receive.
func (w *worker) promised(gives bool) int {
	n := 0
	for _, f := range w.faces {
		if f.migration.open && f.migration.sends == gives {
			n += f.migration.count
		}
	}
	return n
}

// movable returns how many of count planes this peer can send or receive.
func (w *worker) movable(count int, gives bool) int {
	if gives {
		return max(0, min(count, w.planes()-1-w.promised(true)))
	}
	return max(0, min(count, w.maxPlanes-w.planes()-w.promised(false)))
}

// ending reports whether the run or the time step is about to end.
func (w *worker) ending() bool {
	var o iterate.Outcome
	w.Rule.Outcome(&o)
	return o.Reason != iterate.Running || w.StopRequested || w.Done || w.Fault != nil
}

// rebalance sends loads to the neighbours and proposes moves.
func (w *worker) rebalance() {
	if !w.speed.updated || w.ending() {
		return
	}
	w.speed.updated = false
	point := w.speed.point()
	if point == 0 {
		return
	}
	slow := w.block.Layout.Dim - 1
	plane := point * float64(w.block.Layout.Points()/w.planes())
	own := load{known: true, speed: 1 / plane, planes: w.planes()}
	if w.planes() > 1 {
		own.longest = plane * float64(w.planes())
	}
	for _, f := range w.faces {
		beyond := load{known: true}
		for _, g := range w.faces {
			if g != f {
				beyond = g.loadBeyond
			}
		}
		side := beyond.add(own)
		if side.known && f.loadSent.changed(side) && (!f.loadSent.known || w.Iterate >= f.loadSentAt+backOffSweeps/2) {
			f.loadSent, f.loadSentAt = side, w.Iterate
			w.Send(f.to.Rank,
				&iterate.Message{Kind: iterate.MsgLoad, A: side.speed, B: side.longest, Count: int64(side.planes)})
		}
		if f.to.Side > 0 && !f.migration.open && f.BoundaryMoves < iterate.MaxBoundaryMoves &&
			f.backOff.expired(w.Steps.CompletedSweeps+w.Iterate, w.speed.windows) {
			b := balance{
				planes: w.config.Problem.N[slow], cut: w.block.Box.Hi[slow], below: side, above: f.loadBeyond,
				sweeps: w.Steps.CompletedSweeps + w.Iterate,
			}
			w.propose(f, b.move())
		}
	}
}

// propose asks the neighbour above for a move of m planes up, or −m down.
func (w *worker) propose(f *face, m int) {
	count := min(w.movable(max(m, -m), m > 0), max(1, maxMoveBytes/f.to.FaceBytes))
	at := w.Iterate + proposalLead
	if count == 0 || w.Checks.Max > 0 && at >= w.Checks.Max {
		return
	}
	f.migration = migration{open: true, awaitsGrant: true, sends: m > 0, count: count, iterate: at}
	f.backOff.begin(w.Steps.CompletedSweeps+w.Iterate, w.speed.windows, m > 0)
	if m < 0 {
		count = -count
	}
	w.Send(f.to.Rank, &iterate.Message{Kind: iterate.MsgMove, Iterate: at, Count: int64(count)})
}

// receiveBalance handles the messages of migrations.
func (w *worker) receiveBalance(f *face, m *iterate.Message) error {
	if w.maxPlanes == 0 {
		return fmt.Errorf("message kind %d; planes do not move in this run", m.Kind)
	}
	h := &f.migration
	switch m.Kind {
	case iterate.MsgLoad:
		if !(m.A > 0) || math.IsInf(m.A, 1) || !(m.B >= 0) || m.Count < 1 ||
			m.Count > int64(w.config.Problem.N[f.to.Axis]) {
			return fmt.Errorf("invalid load: %v planes per second, a sweep of %v seconds, %d planes", m.A, m.B, m.Count)
		}
		f.loadBeyond = load{known: true, speed: m.A, longest: m.B, planes: int(m.Count)}
	case iterate.MsgMove:
		return w.answerProposal(f, m)
	case iterate.MsgGrant:
		if !h.open || !h.awaitsGrant || m.Count < 0 || m.Count > int64(h.count) || m.Iterate != h.iterate {
			return fmt.Errorf("a grant of %d planes at iterate %d; %d were proposed", m.Count, m.Iterate, h.count)
		}
		h.awaitsGrant, h.count = false, int(m.Count)
		h.open = h.count > 0
	case iterate.MsgPlane:
		if !h.open || h.sends || h.awaitsGrant || m.Number != uint64(len(h.layers)) ||
			len(h.layers) == w.layersOf(h.count) {
			return fmt.Errorf("plane %d of a move; plane %d is expected", m.Number, len(h.layers))
		}
		if f.Scheme.Lockstep() && m.Iterate != h.iterate {
			return fmt.Errorf("a plane of iterate %d of a move at %d", m.Iterate, h.iterate)
		}
		h.label = m.Iterate
		h.layers = append(h.layers, slices.Clone(m.Values))
	}
	return nil
}

// answerProposal answers a proposal of the neighbour below.
func (w *worker) answerProposal(f *face, m *iterate.Message) error {
	limit := int64(w.config.Problem.N[f.to.Axis])
	if f.to.Side > 0 || m.Count == 0 || m.Count > limit || m.Count < -limit {
		return fmt.Errorf("an invalid proposal to move %d planes", m.Count)
	}
	gives := m.Count < 0
	count := w.movable(int(max(m.Count, -m.Count)), gives)
	late := f.Scheme.Lockstep() && (w.Iterate > m.Iterate || w.Iterate == m.Iterate && w.pass.steps != nil)
	if f.migration.open || f.BoundaryMoves == iterate.MaxBoundaryMoves || late || w.stepper == nil || w.ending() {
		count = 0
	}
	if count > 0 {
		f.migration = migration{open: true, sends: gives, count: count, iterate: m.Iterate}
	}
	w.Send(f.to.Rank, &iterate.Message{Kind: iterate.MsgGrant, Iterate: m.Iterate, Count: int64(count)})
	return nil
}

// migrate makes the moves that are due between two passes. It reports whether one was made, and whether the
// next sweep has to wait for one.
func (w *worker) migrate(g iterate.Action) (made, waits bool) {
	for _, f := range w.faces {
		h := &f.migration
		if !h.open || w.Fault != nil {
			continue
		}
		strict, complete := f.Scheme.Lockstep(), !h.sends && !h.awaitsGrant && len(h.layers) == w.layersOf(h.count)
		switch {
		case strict && (w.Iterate < h.iterate || g == iterate.ActionWait):
		case h.awaitsGrant:
			waits = waits || strict
		case w.captured != nil:
			// The planes would be missing in the open snapshot.
			waits = waits || strict || complete
		case h.sends && strict && f.Pick(w.Iterate) == nil:
			waits = true // the neighbour may still need older halos of the unmoved cut
		case h.sends:
			made, w.Fault = true, w.config.StepError(w.Steps.Current, w.sendPlanes(f))
		case complete:
			made, w.Fault = true, w.config.StepError(w.Steps.Current, w.receivePlanes(f))
		default:
			waits = waits || strict
		}
	}
	return made, waits
}

// finishMigration ends a migration; ghost, label and present describe the halo to read next.
func (w *worker) finishMigration(f *face, ghost []byte, label iterate.Iteration, have bool) {
	copy(f.AgreedValues(), ghost)
	f.BoundaryMoves++
	f.LabelAgreed(f.Step, label, have)
	f.MovedAt, f.RepeatOlder = w.Iterate, false
	f.migration = migration{}
	w.moves++
}

// sendPlanes sends planes and removes them from the box.
func (w *worker) sendPlanes(f *face) error {
	h := f.migration
	first, outermost, last := 0, h.count, h.count-1
	if f.to.Side > 0 {
		first = w.planes() - h.count
		outermost, last = first-1, 0
	}
	number := uint64(0)
	send := func(pack func(dst []byte)) []byte {
		m := iterate.Message{
			Kind: iterate.MsgPlane, Number: number, Iterate: w.Iterate, Values: make([]byte, f.to.FaceBytes),
		}
		pack(m.Values)
		w.Send(f.to.Rank, &m)
		number++
		return m.Values
	}
	var ghost []byte
	for i := range h.count {
		v := send(func(dst []byte) { f.pack(dst, w.cur, w.layer(f, first+i)) })
		if i == last {
			ghost = v
		}
	}
	send(func(dst []byte) { f.pack(dst, w.cur, w.layer(f, outermost)) })
	if w.Steps.Total > 0 {
		plane := len(w.Steps.Previous) / w.planes()
		for i := range h.count {
			send(func(dst []byte) { kernel.PutFloats(dst, w.Steps.Previous[(first+i)*plane:][:plane]) })
		}
	}
	// The neighbour owns the planes now. Their values are as old as the last halo that this peer has read.
	label, have := iterate.Iteration(0), false
	if old := f.Pick(w.Iterate); old != nil {
		label, have = old.Label, true
	}
	w.planesSent += h.count
	if err := w.removePlanes(f.to.Side, h.count); err != nil {
		return err
	}
	w.finishMigration(f, ghost, label, have)
	return nil
}

// receivePlanes adds the received planes to the box.
func (w *worker) receivePlanes(f *face) error {
	h := f.migration
	var before []float64
	if w.Steps.Total > 0 {
		for _, data := range h.layers[h.count+1:] {
			for value := range slices.Chunk(data, 8) {
				before = append(before, iterate.ReadFloat(value))
			}
		}
	}
	if err := w.addPlanes(f.to.Side, h.count, before); err != nil {
		return err
	}
	first := w.planes() - h.count
	if f.to.Side < 0 {
		first = 0
	}
	for i := range h.count {
		f.unpack(w.cur, h.layers[i:i+1], w.layer(f, first+i))
	}
	w.planesReceived += h.count
	w.finishMigration(f, h.layers[h.count], h.label, true)
	return nil
}
