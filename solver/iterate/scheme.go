package iterate

import "fmt"

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
	// Admit reports whether relaxation k, which makes iterate k+1, may read iterate v of
	// neighbour q.
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

// Synchronous returns the scheme in which relaxation k reads iterate k of every neighbour. It has two slots
// because a neighbour may be one iterate ahead.
func Synchronous() Scheme { return synchronous{} }

type synchronous struct{}

func (synchronous) Name() string                      { return "sync" }
func (synchronous) Asynchronous() bool                { return false }
func (synchronous) Lockstep() bool                    { return true }
func (synchronous) Admit(k, v Iteration, _ Rank) bool { return v == k }
func (synchronous) Slots() int                        { return 2 }
func (s synchronous) Between(_, _ Rank) Scheme        { return s }
func (synchronous) Check(int) error                   { return nil }

// Asynchronous returns the scheme in which a relaxation reads the newest iterate received, of any age.
func Asynchronous() Scheme { return asynchronous{} }

type asynchronous struct{}

func (asynchronous) Name() string                      { return "async" }
func (asynchronous) Asynchronous() bool                { return true }
func (asynchronous) Lockstep() bool                    { return false }
func (asynchronous) Admit(_, _ Iteration, _ Rank) bool { return true }
func (asynchronous) Slots() int                        { return 1 }
func (s asynchronous) Between(_, _ Rank) Scheme        { return s }
func (asynchronous) Check(int) error                   { return nil }

// BoundedDelay returns the scheme in which relaxation k reads the newest iterate received if that is at least
// k − max. Otherwise the peer waits, and halos are repeated. BoundedDelay(0) reads only iterate k: it gives the
// bits of Synchronous over sessions that may lose messages. It has two slots so that a neighbour that is one
// iterate ahead does not overwrite the iterate that is still needed. A negative max counts as 0.
func BoundedDelay(max int) Scheme {
	if max < 0 {
		max = 0
	}
	return boundedDelay{max: Iteration(max)}
}

type boundedDelay struct{ max Iteration }

func (d boundedDelay) Name() string             { return fmt.Sprintf("delay:%d", d.max) }
func (boundedDelay) Asynchronous() bool         { return true }
func (d boundedDelay) Lockstep() bool           { return d.max == 0 }
func (boundedDelay) Slots() int                 { return 2 }
func (d boundedDelay) Between(_, _ Rank) Scheme { return d }
func (boundedDelay) Check(int) error            { return nil }

func (d boundedDelay) Admit(k, v Iteration, _ Rank) bool {
	if d.max == 0 {
		return v == k
	}
	return v+d.max >= k
}
