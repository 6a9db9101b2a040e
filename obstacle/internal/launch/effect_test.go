package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// next removes the oldest message to a peer from the effects and returns it, nil if there is none.
func (r *run) next(m *member) rendezvous.Message {
	for i, e := range r.effects {
		if s, is := e.(send); is && s.to == m {
			r.effects = slices.Delete(r.effects, i, i+1)
			return s.msg
		}
	}
	return nil
}
