package iterate

import "github.com/p2pdc/p2pdc/internal/kernel"

// Refusal is the error of a peer that has read a message which no peer of the run sends.
type Refusal struct {
	From Rank
	Err  error
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Err }

// screenOf returns the screen of what a peer sends.
func (p *Coordination) screenOf(c *Channel) *kernel.Screen {
	c.screen.Most = p.Config.Largest
	return &c.screen
}

// check returns an error for a message with numbers that no peer of the run has.
func (m *Message) check(s *kernel.Screen) error {
	switch m.Kind {
	case MsgCaptured, MsgPlane, MsgLayers, MsgCorrection:
		return s.Check(m.Values)
	case MsgShares: // they hold distances to obstacles, too, which may be infinite
		shares := *s
		shares.Infinite = true
		return shares.Check(m.Values)
	case MsgResidual:
		if err := s.CheckSquares(m.Squares.Float64()); err != nil {
			return err
		}
		return s.CheckSquares(m.Start.Float64())
	case MsgEstimate:
		return s.CheckSquares(m.A)
	case MsgVerdict:
		if err := s.CheckSquares(m.A); err != nil {
			return err
		}
		return s.CheckSquares(m.B)
	}
	return nil
}
