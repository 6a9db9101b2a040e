package schwarz

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// receive accepts a message of the coarse correction.
func (c *correction) receive(w *peer, q iterate.Rank, m *iterate.Message) error {
	if m.Kind == iterate.MsgCorrection {
		if q != c.tree.Parent {
			return fmt.Errorf("coarse correction from a peer that is not the parent in the tree")
		}
		return c.receiveCorrection(w, m)
	}
	if c.tree.Child(q) < 0 {
		return fmt.Errorf("shares of the coarse problem from a peer that is not a child in the tree")
	}
	lockstep := w.config.Scheme.Lockstep()
	below := coarseSubtree(&w.config, q)
	err := readShares(m.Values, func(r iterate.Rank) *share {
		if _, found := slices.BinarySearch(below, r); !found {
			return nil
		}
		return c.find(r)
	}, func(s *share) error {
		if lockstep && s.label != w.Iterate && s.label != w.Iterate+1 {
			return fmt.Errorf("share of iterate %d; this peer is at %d", s.label, w.Iterate)
		}
		if !lockstep && s.number != c.newest {
			return fmt.Errorf("share that includes correction %d; the newest is %d", s.number, c.newest)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.forwardShares(w)
	return nil
}

// receiveCorrection accepts a correction from the parent and forwards it.
func (c *correction) receiveCorrection(w *peer, m *iterate.Message) error {
	if len(m.Values) != 0 && len(m.Values) != 8*c.subtreeBox.Points() {
		return fmt.Errorf("coarse correction of %d bytes; want %d; do all peers use the same method?",
			len(m.Values), 8*c.subtreeBox.Points())
	}
	if w.config.Scheme.Lockstep() {
		return c.receiveLockstep(w, m)
	}
	if !c.awaiting {
		return fmt.Errorf("coarse correction that was not requested")
	}
	if m.Number != c.newest+1 && (m.Number != c.newest || len(m.Values) > 0) ||
		m.Number > c.newest && len(m.Values) == 0 {
		return fmt.Errorf("coarse correction %d of %d bytes after number %d", m.Number, len(m.Values), c.newest)
	}
	c.awaiting = false
	if m.Mark != 0 {
		c.takenBack = m.Number
	}
	if m.Number > c.newest {
		if err := readValues(c.addSum(m.Number), m.Values); err != nil {
			return err
		}
	}
	c.useShares()
	c.sendNewest(w)
	return nil
}

// receiveLockstep accepts the correction of iterate m.Number.
func (c *correction) receiveLockstep(w *peer, m *iterate.Message) error {
	if iterate.Iteration(m.Number) != w.Iterate || c.known && c.number == w.Iterate || !c.own.known ||
		c.own.label != w.Iterate {
		return fmt.Errorf("coarse correction of iterate %d; this peer is at %d", m.Number, w.Iterate)
	}
	if m.Iterate <= w.Iterate {
		return fmt.Errorf("next coarse correction at iterate %d; this peer is at %d", m.Iterate, w.Iterate)
	}
	if c.zero = len(m.Values) == 0; !c.zero {
		if err := readValues(c.values, m.Values); err != nil {
			return err
		}
	}
	c.known = true
	c.number = w.Iterate
	c.nextAt = m.Iterate
	c.takesBack = m.Mark != 0
	c.sendLockstep(w)
	return nil
}

// sendLockstep sends the correction to the children, in lockstep.
func (c *correction) sendLockstep(w *peer) {
	values := c.values
	if c.zero {
		values = nil
	}
	m := iterate.Message{Kind: iterate.MsgCorrection, Number: uint64(c.number), Iterate: c.nextAt}
	c.sendDown(w, m, c.takesBack, values)
}

// sendNewest sends the children the newest sum, or that there is none, and thereby requests new shares.
func (c *correction) sendNewest(w *peer) {
	var values []float64
	if c.sentToChildren < c.newest {
		values = c.sums[c.last].values
	}
	m := iterate.Message{Kind: iterate.MsgCorrection, Number: c.newest}
	c.sendDown(w, m, c.takenBack == c.newest && c.newest > 0, values)
	c.sentToChildren = c.newest
}

// sendDown sends m to the children, with their parts of values. takesBack: the last correction is taken back.
func (c *correction) sendDown(w *peer, m iterate.Message, takesBack bool, values []float64) {
	if takesBack {
		m.Mark = 1
	}
	for i, q := range c.tree.Children {
		if values != nil {
			m.Values = c.encode(values, c.childBoxes[i])
		}
		w.Send(q, &m)
	}
}
