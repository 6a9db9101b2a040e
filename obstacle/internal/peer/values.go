package peer

import (
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// values gives access to the newest iterate of a peer's box, while a runner iterates and between two epochs.
type values struct {
	mu     sync.Mutex
	runner *runner.Runner // nil: none iterates
	kept   chan struct{}  // closed when the values of runner are in u
	u      []float64      // nil: none yet
	box    problem.Box    // of u
	at     iterate.Progress
	former iterate.Iteration // sweeps of former epochs
}

// begin states that a runner iterates.
func (v *values) begin(r *runner.Runner) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runner, v.kept = r, make(chan struct{})
}

// keep keeps the values of a runner that has ended.
func (v *values) keep(u []float64, box problem.Box, at iterate.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at.Sweep += v.former
	v.u, v.box, v.at = u, box, at
	if v.runner = nil; v.kept != nil {
		close(v.kept)
		v.kept = nil
	}
}

// release ends the iterations of a runner without its values, if they were not kept.
func (v *values) release(r *runner.Runner) {
	v.mu.Lock()
	iterates := v.runner == r
	v.mu.Unlock()
	if iterates {
		v.keep(nil, r.Box(), r.Progress())
	}
}

// known reports whether the peer has values of its box.
func (v *values) known() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runner != nil || v.u != nil
}

// relaxing reports whether a runner iterates.
func (v *values) relaxing() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runner != nil
}

// set sets the values while no runner iterates.
func (v *values) set(u []float64, box problem.Box) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.u, v.box = u, box
}

// held returns the values while no runner iterates, and their box; nil and an empty box if there are none.
func (v *values) held() ([]float64, problem.Box) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.u == nil {
		return nil, problem.Box{}
	}
	return v.u, v.box
}

// progress returns the progress up to the values kept.
func (v *values) progress() iterate.Progress {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

// continueFrom sets the number of sweeps that former epochs have made.
func (v *values) continueFrom(k iterate.Iteration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.former = k
}

// abandon ends the iterations of a runner at once.
func (v *values) abandon() {
	v.mu.Lock()
	r := v.runner
	v.mu.Unlock()
	if r != nil {
		r.Abandon()
	}
}

// read calls f with the newest values, once, on some goroutine. f must not keep u, which is nil if there are none.
func (v *values) read(f func(u []float64, box problem.Box, at iterate.Progress)) {
	for {
		v.mu.Lock()
		r, kept, u, box, at, former := v.runner, v.kept, v.u, v.box, v.at, v.former
		v.mu.Unlock()
		if r == nil {
			f(u, box, at)
			return
		}
		if r.Do(func() error {
			at := r.Progress()
			at.Sweep += former
			go f(solutionOf(r), r.Box(), at)
			return nil
		}) {
			return
		}
		<-kept
	}
}

// capture sends values of the newest iterate to the launcher, which has asked for them on the connection.
func (p *peer) capture(conn *rendezvous.Conn, c rendezvous.Capture) {
	p.values.read(func(u []float64, box problem.Box, at iterate.Progress) {
		p.capturing.Lock()
		defer p.capturing.Unlock()
		done := rendezvous.Captured{
			Number: c.Number, Box: box, Step: at.Step, Sweep: uint64(at.Sweep), Residual: nullable.Number(at.Residual),
		}
		if u != nil && sendBlock(conn, rendezvous.StreamCapture, false, box, partsOf(u, box, c.Boxes)) != nil {
			return // receive sees the end of the connection, too
		}
		_ = conn.Send(done)
	})
}

// partsOf returns the values of the parts of some boxes that lie in a block's box, one after the other. They may be u.
func partsOf(u []float64, own problem.Box, boxes []problem.Box) []float64 {
	var out []float64
	for _, b := range boxes {
		for a := range 3 {
			b.Lo[a], b.Hi[a] = max(b.Lo[a], own.Lo[a])-own.Lo[a], min(b.Hi[a], own.Hi[a])-own.Lo[a]
		}
		if len(boxes) == 1 && b.Size() == own.Size() {
			return u
		}
		if !b.Empty() {
			out = append(out, blocks.Extract(u, own.Size(), b)...)
		}
	}
	return out
}
