// Package gate holds the peers of a run at a point of the iteration until a test opens it. A test of real processes kills,
// stops and adds processes meanwhile, so it does not depend on how fast the machine relaxes.
//
// A peer at a closed gate does not relax. It answers messages, keeps copies, and ends when it is told to, as one that
// waits for a neighbour does. The shipped program has no gate: tests add it to the methods of their program.
package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Variable is the environment variable that holds the gate of a process and of the processes that it starts, as JSON.
const Variable = "OBSTACLE_TEST_GATE"

// Gate describes a gate. A peer passes it until all conditions hold: the time step in progress is Step or a later one, the
// newest complete iterate is Sweep or a later one, and, with Kept, the peers have kept an iterate other than the first
// (iterate.OpKept). Every epoch begins with iterate 0, or with the one that was kept.
type Gate struct {
	Dir   string // holds the files that open the gate
	Step  int
	Sweep iterate.Iteration
	Kept  bool
	// Every, if it is not 0, is the least time between two sweeps that pass the closed gate. Speeds are measured over time,
	// so a run in which parts or planes move must relax for some time on every machine.
	Every time.Duration
	// Answer moves the gate behind the end of the iteration: a peer waits there with the first half of its answer written.
	Answer bool
	// Build moves the gate before the start of the run: a peer waits there while it builds its part.
	Build bool
}

// The files of a gate.
const (
	open  = "open"    // opens it
	later = "step-%d" // lets peers relax in this time step
)

// poll is the time between two looks at the files.
const poll = 2 * time.Millisecond

// Environment returns the variable of the environment for processes that wait at the gate.
func (g *Gate) Environment() string {
	text, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	return Variable + "=" + string(text)
}

// Open lets all peers pass, those of later epochs, too.
func (g *Gate) Open() error { return os.WriteFile(filepath.Join(g.Dir, open), nil, 0o600) }

// Pass lets all peers relax in a time step; they wait in the next one.
func (g *Gate) Pass(step int) error {
	return os.WriteFile(filepath.Join(g.Dir, fmt.Sprintf(later, step)), nil, 0o600)
}

// has reports whether a file of the gate exists.
func (g *Gate) has(name string) bool {
	_, err := os.Stat(filepath.Join(g.Dir, name))
	return err == nil
}

// await waits until the gate is open. If its folder is gone, the test has ended, and so does this process.
func (g *Gate) await() {
	for !g.has(open) {
		if _, err := os.Stat(g.Dir); errors.Is(err, fs.ErrNotExist) {
			os.Exit(1)
		}
		time.Sleep(poll)
	}
}

// Methods returns the methods of a catalog with the gate of the environment, or the catalog if there is none. With a gate,
// each epoch keeps the iterate of the first check after iterate 0, and no other, if iterates are kept at all.
func Methods(all *solver.Catalog) (*solver.Catalog, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return all, nil
	}
	g := &Gate{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	gated := &solver.Catalog{}
	for _, name := range all.Names() {
		m, err := all.Lookup(name)
		if err == nil {
			err = gated.Add(method{m, g})
		}
		if err != nil {
			return nil, err
		}
	}
	return gated, nil
}

type method struct {
	problem.Method
	gate *Gate
}

func (m method) New(c problem.Config) (problem.Peer, error) {
	keeps := c.KeepEvery > 0
	if keeps {
		c.KeepEvery = leap
	}
	if m.gate.Build {
		m.gate.await()
	}
	p, err := m.Method.New(c)
	if err != nil {
		return nil, err
	}
	return &peer{Peer: p, gate: m.gate, keeps: keeps, begin: p.Progress().Sweep}, nil
}

// leap is the time by which the clock of a peer that keeps iterates is set forward after its first sweep.
const leap = time.Hour

// peer is a peer of a method with a gate.
type peer struct {
	problem.Peer
	gate  *Gate
	keeps bool              // iterates, at the first check that is leap after the start
	begin iterate.Iteration // of the epoch
	ahead time.Duration     // of the clock of the shell: 0 or leap
	kept  bool              // an iterate other than the first
	sweep iterate.Iteration // that passed the closed gate last, with Every
	after time.Duration     // when the next one may
	free  bool              // the gate is open, or the run is to end
}

// Next implements iterate.Peer.
func (p *peer) Next(now time.Duration) iterate.Op {
	if p.keeps && p.ahead == 0 && p.Progress().Sweep > p.begin {
		p.ahead = leap
	}
	op := p.Peer.Next(now + p.ahead)
	if op.Until > 0 {
		op.Until -= p.ahead
	}
	switch {
	case op.Kind == iterate.OpKept:
		p.kept = p.kept || op.Label > 0
	case op.Kind == iterate.OpRelax && p.holds(now):
		return iterate.Op{Kind: iterate.OpWait, Until: now + poll}
	}
	return op
}

// Stop implements iterate.Peer. The run then ends after one or two relaxations.
func (p *peer) Stop(now time.Duration, why iterate.Reason) {
	p.free = true
	p.Peer.Stop(now+p.ahead, why)
}

// Halo implements iterate.Peer.
func (p *peer) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	return p.Peer.Halo(now+p.ahead, q, tag, label, data...)
}

// Agree implements iterate.Peer.
func (p *peer) Agree(now time.Duration, q iterate.Rank, msg []byte) error {
	return p.Peer.Agree(now+p.ahead, q, msg)
}

// Solution implements iterate.Peer.
func (p *peer) Solution(dst []float64) {
	if !p.gate.Answer {
		p.Peer.Solution(dst)
		return
	}
	u := make([]float64, len(dst))
	p.Peer.Solution(u)
	half := copy(dst, u[:len(u)/2])
	p.gate.await()
	copy(dst[half:], u[half:])
}

// holds reports whether the peer waits at the gate.
func (p *peer) holds(now time.Duration) bool {
	at := p.Progress()
	if p.free || p.gate.Answer || p.gate.Build || at.Step < p.gate.Step || at.Sweep < p.gate.Sweep || p.gate.Kept && !p.kept {
		return false
	}
	if p.free = p.gate.has(open); p.free || p.gate.has(fmt.Sprintf(later, at.Step)) {
		return false
	}
	if p.gate.Every == 0 || at.Sweep != p.sweep && now < p.after {
		return true
	}
	if at.Sweep != p.sweep {
		p.sweep, p.after = at.Sweep, now+p.gate.Every
	}
	return false
}
