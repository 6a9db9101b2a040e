package solver

import "fmt"

// Scheme of iteration: which iterate of a neighbour a relaxation may read.
type Scheme interface {
	// Name as in the program's flags: "sync", "async", "delay:3".
	Name() string
	// Asynchronous is the communication mode that the halo sessions want. Between
	// two neighbours ask Between(s, a, b).Asynchronous.
	Asynchronous() bool
	// Admit tells whether relaxation k (which makes iterate k+1) may read
	// iterate v of neighbour q.
	Admit(k, v Iteration, q Rank) bool
	// Slots is the number of slots of a face: iterate v travels in tag v mod Slots.
	Slots() int
}

// Between is the scheme in force between two neighbours: s itself, unless s tells
// neighbours apart as Hybrid does.
func Between(s Scheme, a, b Rank) Scheme {
	if h, ok := s.(hybrid); ok {
		return h.between(a, b)
	}
	return s
}

// Lockstep tells whether a run with s gives the bits of the sequential method.
func Lockstep(s Scheme) bool { return inLockstep(s) }

// lockstep is implemented by schemes whose relaxation k reads iterate k of every
// neighbour and nothing else; they end by the synchronous rule.
type lockstep interface{ Lockstep() bool }

func inLockstep(s Scheme) bool {
	if l, ok := s.(lockstep); ok {
		return l.Lockstep()
	}
	return !s.Asynchronous()
}

// Synchronous is the scheme in which relaxation k reads exactly iterate k of
// every neighbour. Two slots: a neighbour may be one iterate ahead.
func Synchronous() Scheme { return synchronous{} }

type synchronous struct{}

func (synchronous) Name() string                      { return "sync" }
func (synchronous) Asynchronous() bool                { return false }
func (synchronous) Admit(k, v Iteration, _ Rank) bool { return v == k }
func (synchronous) Slots() int                        { return 2 }
func (synchronous) Lockstep() bool                    { return true }

// Asynchronous is the scheme in which a relaxation reads the newest iterate that
// has come, whatever its age.
func Asynchronous() Scheme { return asynchronous{} }

type asynchronous struct{}

func (asynchronous) Name() string                      { return "async" }
func (asynchronous) Asynchronous() bool                { return true }
func (asynchronous) Admit(_, _ Iteration, _ Rank) bool { return true }
func (asynchronous) Slots() int                        { return 1 }

// BoundedDelay is the scheme in which relaxation k reads the newest iterate that
// has come if it is at least k − max, and waits, having faces repeated, while it
// is older. BoundedDelay(0) reads iterate k and nothing else: bitwise synchronous,
// over a channel that may lose. Two slots by parity: a neighbour that is one
// iterate ahead must not destroy the one still needed. A negative max counts as 0.
func BoundedDelay(max int) Scheme {
	if max < 0 {
		max = 0
	}
	return boundedDelay{max: Iteration(max)}
}

type boundedDelay struct{ max Iteration }

func (d boundedDelay) Name() string     { return fmt.Sprintf("delay:%d", d.max) }
func (boundedDelay) Asynchronous() bool { return true }
func (boundedDelay) Slots() int         { return 2 }
func (d boundedDelay) Lockstep() bool   { return d.max == 0 }

func (d boundedDelay) Admit(k, v Iteration, _ Rank) bool {
	if d.max == 0 {
		return v == k
	}
	return v+d.max >= k
}
