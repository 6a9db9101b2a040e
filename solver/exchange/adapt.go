package exchange

import "time"

// beginAdapt begins to change the mode of the halo sessions that are asynchronous by the scheme.
// All are changed at once, since neighbours ask for their changes in different orders.
func (x *Exchange) beginAdapt(now time.Duration) {
	for _, n := range x.neighbours {
		n.adaptAsked = false
	}
	x.adapting = now
	x.pending = operation{kind: adaptation}
}

// Adapting reports whether the operation in progress is a change of mode.
func (x *Exchange) Adapting() bool { return x.pending.kind == adaptation }

// adapt reports whether both ends of all these sessions have changed.
func (x *Exchange) adapt(now time.Duration, asynchronous bool) (bool, error) {
	done := true
	for _, n := range x.neighbours {
		if !n.Link.Asynchronous || n.haloClosed {
			continue
		}
		over, err := n.adapt(asynchronous)
		if err != nil {
			if err = x.close(n, &n.haloClosed, err); err != nil {
				return false, err
			}
			over = true
		}
		if done = done && over; over && n.asynchronous != asynchronous {
			n.asynchronous, n.posted = asynchronous, false
			for i := range n.buffers {
				n.buffers[i].transfer = 0 // transfers of the old mode are complete
			}
		}
	}
	if done {
		x.changes++
		x.changing += now - x.adapting
	}
	return done, nil
}

func (n *Neighbour) adapt(asynchronous bool) (bool, error) {
	if !n.adaptAsked {
		if err := n.Halo.Adapt(mode(asynchronous)); err != nil {
			return false, err
		}
		n.adaptAsked = true
	}
	return n.Halo.Adapted()
}
