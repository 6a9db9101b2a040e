package solver

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Executor runs f(0) … f(n−1), possibly on several threads. Results do not depend
// on it.
type Executor = kernel.Executor

// Sequential is the Executor on the caller's goroutine.
type Sequential = kernel.Sequential

// Peer is what one peer of a run computes, whatever the method: pure reverse
// communication. The shell asks Next what to do, does it, and tells what arrives by
// Halo and Agree. Not safe for concurrent use.
type Peer interface {
	// Next says what to do now; now is the time since the run's start and must not
	// decrease. An OpRelax is repeated until Relax was called for it. After OpDone it
	// answers OpDone.
	Next(now time.Duration) Op
	// Relax does the part that Next asked for; any other op is ignored.
	Relax(op Op)
	// Pack writes what op, an OpSend, asks for: op.Bytes bytes.
	Pack(op Op, dst []byte)
	// Halo tells that the slot of (rank, tag) now holds data, of age label. data is only
	// read before the next call of Halo for the same slot. The error names q; the run
	// cannot go on after one.
	Halo(now time.Duration, q Rank, tag uint32, label uint64, data []byte) error
	// Agree tells that an agreement message came from q; msg is not kept. The error
	// names q; the run cannot go on after one.
	Agree(now time.Duration, q Rank, msg []byte) error
	// Stop asks for an early end.
	Stop(now time.Duration, why Reason)
	// Outcome tells how the run ended, or how far it has come.
	Outcome() Outcome
	Progress() Progress
	// Solution writes the agreed block [z][y][x] of the box after OpDone, and the newest
	// complete iterate before. dst has as many values as the box has points.
	Solution(dst []float64)
	Box() Box
	// Links are the peers that this one exchanges anything with; the same list as
	// Config.Links gives.
	Links() []Link
}

// Link is what travels between a peer and another one.
type Link struct {
	Rank Rank
	// Slots are the lengths in bytes of what arrives on the halo session, by tag; empty:
	// there is no halo session. What is sent there may be of other lengths (Op.Bytes).
	Slots []int
	// Sent are the lengths of what is sent, by tag.
	Sent []int
	// Agreement is the length in bytes of the longest agreement message; 0: there is no
	// agreement session.
	Agreement int
	// Asynchronous is the communication mode that the halo session wants.
	Asynchronous bool
}

// MessageBytes is the length of the longest message that the link carries, either way.
func (l Link) MessageBytes() int {
	longest := l.Agreement
	for _, n := range l.Slots {
		longest = max(longest, n)
	}
	for _, n := range l.Sent {
		longest = max(longest, n)
	}
	return longest
}

// Names of methods.
const (
	Richardson = "richardson" // projected Richardson, on the whole grid
	SOR        = "sor"        // red-black projected SOR, on the whole grid
	Multigrid  = "multigrid"  // projected multigrid, on the whole grid
	Schwarz    = "schwarz"    // every peer solves on its own box, overlapping its neighbours'
)

// MethodConfig says how the peers of a run improve an iterate. Its zero value is
// projected Richardson.
type MethodConfig struct {
	Name string // "": Richardson
	// Local is the method of a peer on its own box in Schwarz: Richardson, SOR or
	// Multigrid; "": Multigrid.
	Local string
	// Overlap is how many layers a box grows into its neighbours' in Schwarz, 0 to
	// MaxOverlap.
	Overlap int
	// Work is how many cycles (sweeps, of point methods) of the local method a peer does
	// between two exchanges; 0: chosen by measurement.
	Work int
	// Coarse is the most points of the grid of Schwarz's coarse correction; 0: chosen, at
	// most 1/64 of the points and, out of lockstep, 8 a peer; negative: there is none.
	Coarse int
	// Flexible sends values while a local solve of several cycles is still going on.
	Flexible bool
	// Omega is the relaxation factor of SOR, above 0 and below 2; 0: found from the
	// observed rate.
	Omega float64
	// Cycle is that of Multigrid: "v" or "w"; "": chosen.
	Cycle string
	// Together is how many sweeps of Richardson a peer that has the whole grid does in one
	// pass over memory, with the same result; 0: chosen by the processor's caches.
	Together int
	// Step is Richardson's δ in units of 1/max a_ii, above 0 and at most 1, where it is a
	// contraction; 0: 1, the fastest.
	Step float64
}

// step is δ where the largest diagonal entry is that.
func (m *MethodConfig) step(diagonal float64) float64 {
	if m.Step == 0 {
		return 1 / diagonal
	}
	return m.Step / diagonal
}

// MaxOverlap bounds MethodConfig.Overlap.
const MaxOverlap = 8

// check refuses what no method understands.
func (m *MethodConfig) check() error {
	switch m.Name {
	case "", Richardson, SOR, Multigrid, Schwarz:
	default:
		return fmt.Errorf("solver: no method %q; there are %s, %s, %s and %s", m.Name, Richardson, SOR, Multigrid, Schwarz)
	}
	switch m.Local {
	case "", Richardson, SOR, Multigrid:
	default:
		return fmt.Errorf("solver: no local method %q; there are %s, %s and %s", m.Local, Richardson, SOR, Multigrid)
	}
	switch {
	case m.Overlap < 0 || m.Overlap > MaxOverlap:
		return fmt.Errorf("solver: an overlap of %d layers; there may be 0 to %d", m.Overlap, MaxOverlap)
	case m.Work < 0:
		return fmt.Errorf("solver: %d cycles between two exchanges; there must be 1 or more, or 0 for a good choice", m.Work)
	case m.Together < 0:
		return fmt.Errorf("solver: %d sweeps in one pass over memory; there must be 1 or more, or 0 for a good choice", m.Together)
	case m.Step != 0 && !(m.Step > 0 && m.Step <= 1):
		return fmt.Errorf("solver: the step is %v of 1/max a_ii; it must be above 0 and at most 1, where the iteration is a contraction", m.Step)
	case m.Omega != 0 && !(m.Omega > 0 && m.Omega < 2):
		return fmt.Errorf("solver: the relaxation factor is %v; it must lie between 0 and 2", m.Omega)
	case m.Cycle != "" && m.Cycle != "v" && m.Cycle != "w":
		return fmt.Errorf("solver: no cycle %q; there are v and w", m.Cycle)
	}
	return nil
}

// Check refuses, before anything is started, what New would refuse for a rank of the run
// by the configuration alone: a scheme, an order or a partition that the method does not
// have. The problem's functions are not evaluated.
func (c *Config) Check() error {
	if err := c.Method.check(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	name := c.Method.Name
	if (name == SOR || name == Multigrid) && !inLockstep(c.Scheme) {
		return fmt.Errorf("solver: method %s needs all peers at the same iterate, which scheme %s does not keep; take %s with it as the local method, or a synchronous scheme",
			name, c.Scheme.Name(), Schwarz)
	}
	if c.Order != Jacobi && name != "" && name != Richardson {
		return fmt.Errorf("solver: order %v is one of %s; method %s has an order of its own (--order jacobi)", c.Order, Richardson, name)
	}
	if name == Schwarz && c.Method.Flexible && c.Scheme.Name() != Asynchronous().Name() {
		return fmt.Errorf("solver: values of a solve that is going on may only be read in the asynchronous scheme; the scheme is %s (--flexible)", c.Scheme.Name())
	}
	if name == Multigrid {
		return c.checkGathered()
	}
	return nil
}

// New builds what a peer runs, by the method of the configuration.
func New(c Config) (Peer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	switch c.Method.Name {
	case "", Richardson:
		return NewWorker(c)
	case SOR, Multigrid:
		return NewLevels(c)
	case Schwarz:
		return newSchwarz(c)
	}
	return nil, noMethod(c.Method.Name)
}

// Links are the peers that rank exchanges anything with in a run of this
// configuration, whose Problem, Partition, Scheme and Method alone matter.
func (c *Config) Links(rank Rank) []Link {
	if c.Method.Name == SOR || c.Method.Name == Multigrid {
		return c.levelLinks(rank)
	}
	var out []Link
	if c.Method.Name == Schwarz {
		return c.schwarzLinks(rank)
	}
	for _, n := range c.Partition.Neighbours(rank) {
		s := Between(c.Scheme, rank, n.Rank)
		l := Link{Rank: n.Rank, Agreement: AgreementBytes(n), Asynchronous: s.Asynchronous()}
		for range s.Slots() {
			l.Slots = append(l.Slots, n.FaceBytes)
			l.Sent = append(l.Sent, n.FaceBytes)
		}
		out = append(out, l)
	}
	return out
}
