package peer

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// reporter sends the ends of time steps to the launcher while the peer continues to relax. The next step waits until
// the current one is sent.
type reporter struct {
	conn      *rendezvous.Conn
	u         []float64 // the block being sent
	box       problem.Box
	sendBoxes bool // send the box with each block, since planes move
	next      chan iterate.StepResult
	free      chan struct{} // u may be overwritten
	end       chan struct{} // closed after the last send, or after an error
	err       error         // valid after end is closed or free was received
}

// newReporter returns a reporter. It allocates no block before the first time step ends.
func newReporter(conn *rendezvous.Conn, sendBoxes bool) *reporter {
	r := &reporter{
		conn: conn, sendBoxes: sendBoxes,
		next: make(chan iterate.StepResult), free: make(chan struct{}, 1), end: make(chan struct{}),
	}
	r.free <- struct{}{}
	go r.send()
	return r
}

// stepper returns runner.Config.Step, nil for a stationary problem.
func (e *epoch) stepper() func(iterate.StepResult, problem.Box, func([]float64)) error {
	if e.work.config.Problem.Steps() == 0 {
		return nil
	}
	return func(s iterate.StepResult, box problem.Box, solution func([]float64)) error {
		return e.reporter.step(s, box, solution)
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
			r.err = sendBlock(r.conn, rendezvous.StreamStep, r.sendBoxes, r.box, r.u)
		}
		if r.err == nil {
			r.err = r.conn.Send(
				rendezvous.Step{Step: s.Step, Sweeps: uint64(s.Sweeps), Residual: nullable.Number(s.Residual)})
		}
		r.free <- struct{}{}
	}
}

// close returns when all steps have been sent, or after an error.
func (r *reporter) close() {
	close(r.next)
	<-r.end
}

// sendBlock sends a block in pieces, after its box if sendBox is set.
func sendBlock(conn *rendezvous.Conn, s rendezvous.Stream, sendBox bool, box problem.Box, u []float64) error {
	if sendBox {
		if err := conn.Send(rendezvous.Block{Stream: s, Box: box}); err != nil {
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
