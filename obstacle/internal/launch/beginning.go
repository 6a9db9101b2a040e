package launch

import "github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"

// beginning is what all assignments of an epoch have in common, whatever is heard of other peers between two of them.
type beginning struct {
	epoch  int
	sweeps uint64 // see run.sweeps
	omega  float64
}

// begun returns the beginning of the epoch.
func (r *run) begun() *beginning {
	if r.beginning == nil || r.beginning.epoch != r.epoch {
		r.beginning = &beginning{r.epoch, r.sweeps(), r.omega()}
	}
	return r.beginning
}

// omega returns the relaxation factor of a peer with the most sweeps. All survivors have the same at a sweep.
func (r *run) omega() (omega float64) {
	most := uint64(0)
	for _, m := range r.members {
		if m.omega > 0 && m.sweep >= most {
			most, omega = m.sweep, m.omega
		}
	}
	return omega
}

// entered accepts what a peer reports when it enters an epoch.
func (m *member) entered(l *rendezvous.Listen) {
	m.control, m.listens, m.idle = l.Control, l.Epoch, l.Idle
	m.sweep, m.holding, m.held = max(m.sweep, l.Sweep), l.Holding, l.Box
	if l.Omega > 0 && l.Omega < 2 {
		m.omega = l.Omega
	}
}
