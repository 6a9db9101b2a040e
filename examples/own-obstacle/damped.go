package main

import (
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// damped is the projected Richardson method with 0.8 times the largest step.
type damped struct{ richardson.Method }

// Name implements problem.Method.
func (damped) Name() string { return "damped" }

// New implements problem.Method.
func (d damped) New(c problem.Config) (problem.Peer, error) {
	c.Method = problem.MethodConfig{Name: d.Method.Name(), Step: 0.8}
	return d.Method.New(c)
}
