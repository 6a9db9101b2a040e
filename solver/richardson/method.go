// Package richardson implements the projected Richardson method in every scheme. Each peer relaxes its box and
// exchanges faces with its neighbours. Planes of the grid may move between peers during the run.
package richardson

import (
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Method is the projected Richardson method.
type Method struct{}

// Name returns "richardson".
func (Method) Name() string { return problem.Richardson }

// Check returns nil: the method has no restrictions.
func (Method) Check(*problem.Config) error { return nil }

// Links returns the peers that rank r shares a face with, in the partition's order.
func (Method) Links(c *problem.Config, r iterate.Rank) []iterate.Link {
	var out []iterate.Link
	for _, n := range c.Partition.Neighbours(r) {
		s := c.Scheme.Between(r, n.Rank)
		l := iterate.Link{Rank: n.Rank, Agreement: iterate.AgreementBytes(n.FaceBytes), Asynchronous: s.Asynchronous()}
		for range s.Slots() {
			l.Slots = append(l.Slots, n.FaceBytes)
			l.Sent = append(l.Sent, n.FaceBytes)
		}
		out = append(out, l)
	}
	return out
}

// New returns a peer of the method.
func (Method) New(c problem.Config) (problem.Peer, error) {
	w, err := newWorker(c)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Describe returns "": the method has no settings to report.
func (w *worker) Describe() string { return "" }
