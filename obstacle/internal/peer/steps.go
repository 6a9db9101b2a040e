package peer

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// reporter hands the ends of time steps to the launcher while the peer relaxes on: one
// is on its way, and the next waits for it.
type reporter struct {
	conn *rendezvous.Conn
	u    []float64 // the block on its way
	box  problem.Box
	told bool // boxes are told, since planes move
	next chan iterate.StepResult
	free chan struct{} // u may be written
	end  chan struct{} // everything is sent, or cannot be
	err  error         // valid once end is closed, or free was received
}

// newReporter holds nothing until the first time step ends.
func newReporter(conn *rendezvous.Conn, told bool) *reporter {
	r := &reporter{conn: conn, told: told, next: make(chan iterate.StepResult), free: make(chan struct{}, 1), end: make(chan struct{})}
	r.free <- struct{}{}
	go r.send()
	return r
}

// stepper is runner.Config.Step; nil in a stationary run.
func (p *peer) stepper(prob *problem.Problem) func(iterate.StepResult, problem.Box, func([]float64)) error {
	if prob.Steps() == 0 {
		return nil
	}
	return func(s iterate.StepResult, box problem.Box, solution func([]float64)) error {
		return p.reporter.step(s, box, solution)
	}
}

func (r *reporter) step(s iterate.StepResult, box problem.Box, solution func([]float64)) error {
	<-r.free
	if r.err != nil {
		return r.err
	}
	r.box, r.u = box, slices.Grow(r.u[:0], box.Points())[:box.Points()]
	solution(r.u)
	r.next <- s
	return nil
}

func (r *reporter) send() {
	defer close(r.end)
	for s := range r.next {
		if r.err == nil {
			r.err = r.one(s)
		}
		r.free <- struct{}{}
	}
}

func (r *reporter) one(s iterate.StepResult) error {
	if err := sendBlock(r.conn, rendezvous.StreamStep, r.told, r.box, r.u); err != nil {
		return err
	}
	return r.conn.Send(rendezvous.Step{Step: s.Step, Sweeps: uint64(s.Sweeps), Residual: nullable.Number(s.Residual)})
}

// close returns when what was handed over has been sent, or cannot be.
func (r *reporter) close() {
	close(r.next)
	<-r.end
}

// sendBlock sends a block in pieces; which box it is comes first, if that is to be told.
func sendBlock(conn *rendezvous.Conn, s rendezvous.Stream, told bool, box problem.Box, u []float64) error {
	if told {
		if err := conn.Send(rendezvous.BlockOf(s, box)); err != nil {
			return err
		}
	}
	buf := make([]byte, min(rendezvous.MaxChunk, 8*len(u)))
	for at := 0; at < len(u); {
		piece := buf[:min(len(buf), 8*(len(u)-at))]
		blocks.Encode(piece, u[at:at+len(piece)/8])
		if err := conn.Send(rendezvous.Chunk{Stream: s, Offset: 8 * int64(at), Data: piece}); err != nil {
			return err
		}
		at += len(piece) / 8
	}
	return nil
}
