package peer

import (
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// sample sends the values at some points of the newest iterate to the launcher, for display.
func (p *peer) sample(conn *rendezvous.Conn, c rendezvous.Capture) {
	s := c.Sample
	p.values.sample(func(box problem.Box, at iterate.Progress, values func(dst []float64, part problem.Box)) {
		done := rendezvous.Captured{
			Number: c.Number, Sampled: true, Step: at.Step, Sweep: uint64(at.Sweep), Residual: nullable.Number(at.Residual),
		}
		var u []float64
		if values != nil && s.Valid(p.problem.N) {
			done.Box, u = box, s.Read(box, values)
		}
		go func() {
			p.capturing.Lock()
			defer p.capturing.Unlock()
			if len(u) > 0 && sendBlock(conn, rendezvous.StreamCapture, false, done.Box, u) != nil {
				return // receive sees the end of the connection, too
			}
			_ = conn.Send(done)
		}()
	})
}

// sample calls f with a function that writes a part of the newest iterate, nil if there is none. It is valid until f
// returns, which must not take long: no relaxation proceeds meanwhile.
func (v *values) sample(f func(box problem.Box, at iterate.Progress, values func(dst []float64, part problem.Box))) {
	for {
		v.mu.Lock()
		r, kept, u, box, at, former := v.runner, v.kept, v.u, v.box, v.at, v.former
		v.mu.Unlock()
		if r == nil {
			var values func([]float64, problem.Box)
			if u != nil {
				values = func(dst []float64, part problem.Box) {
					for a := range 3 {
						part.Lo[a], part.Hi[a] = part.Lo[a]-box.Lo[a], part.Hi[a]-box.Lo[a]
					}
					copy(dst, blocks.Extract(u, box.Size(), part))
				}
			}
			f(box, at, values)
			return
		}
		if r.Do(func() error {
			at := r.Progress()
			at.Sweep += former
			f(r.Box(), at, r.Values)
			return nil
		}) {
			return
		}
		<-kept
	}
}
