package iterate

import (
	"fmt"
	"math"
)

// Scheme determines which iterate of a neighbour a relaxation may read. Schemes are immutable and safe for
// concurrent use.
type Scheme interface {
	// Name returns the name, as in "sync", "async" or "delay:3".
	Name() string
	// Asynchronous returns the communication mode of halo sessions. Between gives that of one session.
	Asynchronous() bool
	// Lockstep reports whether relaxation k reads only iterate k of every neighbour. A run then gives the
	// bits of the sequential iteration and ends at the same iterate.
	Lockstep() bool
	// Admit reports whether relaxation k, which makes iterate k+1, may read iterate v of neighbour q.
	Admit(k, v Iteration, q Rank) bool
	// Slots returns the number of slots of a halo session, 1 to 64. Iterate v uses slot v mod Slots.
	Slots() int
	// Between returns the scheme between two neighbours. It is the scheme itself, unless the
	// scheme depends on the pair as Hybrid does.
	Between(a, b Rank) Scheme
	// Check returns an error if the scheme does not fit a run of so many peers.
	Check(peers int) error
}

// CheckScheme returns an error if a run of so many peers cannot use the scheme.
func CheckScheme(s Scheme, peers int) error {
	if s.Slots() < 1 || s.Slots() > 64 {
		return fmt.Errorf("iterate: scheme %q has %d slots; it may have 1 to 64", s.Name(), s.Slots())
	}
	return s.Check(peers)
}

// uniform is a scheme that is the same between all pairs of peers.
type uniform struct {
	name         string
	asynchronous bool
	slots        int
	delay        Iteration // largest k − v; with 0 a relaxation reads iterate k only
}

func (s uniform) Name() string             { return s.name }
func (s uniform) Asynchronous() bool       { return s.asynchronous }
func (s uniform) Lockstep() bool           { return s.delay == 0 }
func (s uniform) Slots() int               { return s.slots }
func (s uniform) Between(_, _ Rank) Scheme { return s }
func (uniform) Check(int) error            { return nil }

func (s uniform) Admit(k, v Iteration, _ Rank) bool {
	return v == k || s.delay > 0 && (v > k || k-v <= s.delay)
}

// Synchronous returns the scheme in which relaxation k reads iterate k of every neighbour. It has two slots
// because a neighbour may be one iterate ahead.
func Synchronous() Scheme { return uniform{name: "sync", slots: 2} }

// Asynchronous returns the scheme in which a relaxation reads the newest iterate received, of any age.
func Asynchronous() Scheme {
	return uniform{name: "async", asynchronous: true, slots: 1, delay: math.MaxUint64}
}

// BoundedDelay returns the scheme in which relaxation k reads the newest iterate received if that is at least
// k − most. Otherwise the peer waits, and halos are repeated. BoundedDelay(0) reads only iterate k: it gives the
// bits of Synchronous over sessions that may lose messages. It has two slots so that a neighbour that is one
// iterate ahead does not overwrite the iterate that is still needed. A negative bound counts as 0.
func BoundedDelay(most int) Scheme {
	most = max(most, 0)
	return uniform{name: fmt.Sprintf("delay:%d", most), asynchronous: true, slots: 2, delay: Iteration(most)}
}
