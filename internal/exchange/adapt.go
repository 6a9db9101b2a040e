package exchange

import "time"

// Adapting reports whether the operation in progress is a change of mode.
func (x *Exchange) Adapting() bool { return x.pending.kind == adaptation }

// adapt reports whether both ends of all halo sessions that are asynchronous by the scheme have changed their
// mode. All are changed at once, because neighbours request their changes in different orders.
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
			n.asynchronous = asynchronous
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

// adapt requests the mode once for the halo session, and reports whether both ends have changed.
func (n *Neighbour) adapt(asynchronous bool) (bool, error) {
	if !n.adaptRequested {
		if err := n.Halo.Adapt(mode(asynchronous)); err != nil {
			return false, err
		}
		n.adaptRequested = true
	}
	return n.Halo.Adapted()
}
