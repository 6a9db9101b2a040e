package schwarz

import (
	"cmp"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// correction is a peer's part of the coarse correction. Shares of the coarse problem travel up a tree. The root
// solves the problem and sends the correction down. Peers add it at points that are not in contact, and
// project.
//
// In lockstep the correction of iterate k is part of relaxation k. In other schemes no peer waits for it.
// Corrections are then computed in rounds: a peer adds a correction when it assembles its next iterate,
// computes its next share from that iterate, and computes no other share before the next correction arrives.
// The root solves when it has the shares of all peers. coarseForecast accounts for the relaxations in the
// meantime. A peer that reads a patch adds to its values the corrections that they do not yet include, so that
// each correction counts once everywhere. For that purpose the cumulative sums of corrections are kept, and
// values carry the number of the last sum they include.
type correction struct {
	grid       *coarseGrid
	subtreeBox kernel.Box // coarse points that this peer and its subtree read
	shares     []share    // of this peer and its subtree, by rank
	own        *share
	tree       iterate.Tree
	childBoxes []kernel.Box // subtreeBox per child
	solver     *coarseSolver

	defect       []float64      // of the region
	couplings    []faceCoupling // empty in lockstep
	lower, upper []float64      // obstacles at the region's points and ghosts; nil: none
	buffer, line []float64

	correctionState
	values []float64 // dense over subtreeBox
	before []float64 // of the region: values before the last correction
	sums   []correctionSum
}

// correctionState is the state of a correction in a run or a time step.
type correctionState struct {
	known            bool // lockstep: the correction of iterate number is known
	number           iterate.Iteration
	zero             bool              // the correction is 0
	correctedIterate iterate.Iteration // the iterate after the last correction; 0: none
	takesBack        bool              // the last correction is taken back: the relaxation begins with before
	nextAt           iterate.Iteration // no shares before this iterate

	newest         uint64 // asynchronous: number of the newest sum
	inWork         uint64 // number of the sum in the working array
	inIterate      uint64 // in the own iterate
	sentToChildren uint64 // sent to the children
	last           int    // index of the newest in sums
	differenceFrom uint64 // values is the difference of the sums of this number
	differenceTo   uint64 // and this one
	takenBack      uint64 // number of the newest sum that takes the previous one back
	awaiting       bool   // shares were sent and not answered
	renewShares    bool   // root: request all shares again after a pause
}

// correctionSum is the sum of all corrections up to a number, dense over subtreeBox.
type correctionSum struct {
	number uint64
	valid  bool
	values []float64
}

// sumsKept is the number of sums that are kept. Values that lack older corrections are used unchanged.
const sumsKept = 16

func newCorrection(w *peer) (*correction, error) {
	c := &w.config
	n, ok := coarseGridOf(c)
	if !ok {
		return nil, nil
	}
	g, err := newCoarseGrid(c.Problem, n)
	if err != nil {
		return nil, err
	}
	k := &correction{grid: g, defect: c.NewArray(w.layout.Len())}
	k.tree = coarseTree(c, c.Rank)
	k.subtreeBox = g.subtreeBox(c, c.Rank)
	for _, q := range coarseSubtree(c, c.Rank) {
		box := g.coarseBox(grown(c.Partition.Box(q), 1, g.fine))
		k.shares = append(k.shares, share{rank: q, box: box, values: make([]float64, shareFields*box.Points())})
	}
	k.own = k.find(c.Rank)
	for _, q := range k.tree.Children {
		k.childBoxes = append(k.childBoxes, g.subtreeBox(c, q))
	}
	k.buffer = make([]float64, w.layout.N[0]+2)
	k.line = make([]float64, g.n[0]+2)
	k.values = make([]float64, k.subtreeBox.Points())
	if c.Scheme.Lockstep() {
		k.before = c.NewArray(w.layout.Len())
	} else {
		k.before = c.NewArray(w.ownPart.Len())
		k.couplings = newFaceCouplings(w)
		for range sumsKept {
			k.sums = append(k.sums, correctionSum{values: make([]float64, k.subtreeBox.Points())})
		}
	}
	if k.tree.Parent < 0 {
		k.solver = newCoarseSolver(w, k)
	}
	return k, nil
}

// find returns the share of a rank, or nil if it is not in the subtree.
func (c *correction) find(q iterate.Rank) *share {
	byRank := func(s share, q iterate.Rank) int { return cmp.Compare(s.rank, q) }
	i, found := slices.BinarySearchFunc(c.shares, q, byRank)
	if !found {
		return nil
	}
	return &c.shares[i]
}

// begin begins a run or a time step.
func (c *correction) begin(w *peer) error {
	for i := range c.shares {
		c.shares[i].known, c.shares[i].fresh = false, false
	}
	c.correctionState = correctionState{}
	for i := range c.sums {
		c.sums[i].valid = i == 0
		c.sums[i].number = 0
	}
	if len(c.sums) > 0 {
		clear(c.sums[0].values)
	}
	c.sampleObstacles(w)
	for i := range c.couplings {
		c.couplings[i].evaluate(w)
	}
	if c.solver != nil {
		return c.solver.begin(w)
	}
	return nil
}

// sampleObstacles evaluates the obstacles at the region's points and ghosts.
func (c *correction) sampleObstacles(w *peer) {
	b := w.block
	p := b.Problem
	fill := func(old []float64, f problem.Function, field kernel.Field) []float64 {
		if f == nil {
			return nil
		}
		if old == nil {
			old = make([]float64, w.layout.Len())
		}
		for d, idx := range b.Box.Each {
			old[b.Index(idx)] = field.At(d)
		}
		for at, idx := range b.EachGhost {
			old[at] = f(p.At(idx[0], idx[1], idx[2]))
		}
		return old
	}
	c.lower, c.upper = fill(c.lower, p.Obstacle, b.Lower), fill(c.upper, p.Upper, b.Upper)
}

// due reports whether the relaxation that begins takes part in a coarse correction.
func (c *correction) due(w *peer) bool {
	if w.config.Scheme.Lockstep() {
		return w.Iterate >= c.nextAt
	}
	return !c.awaiting && !(c.solver != nil && c.solver.guard.paused(w.Iterate))
}

// forwardShares sends the shares of the subtree to the parent when all have arrived.
func (c *correction) forwardShares(w *peer) {
	if c.solver != nil {
		return
	}
	lockstep := w.config.Scheme.Lockstep()
	if lockstep && !c.complete(w.Iterate) || !lockstep && (c.awaiting || !c.sharesAreNew()) {
		return
	}
	var values []byte
	for i := range c.shares { // all are fresh
		values = c.shares[i].encode(values)
	}
	c.useShares()
	c.awaiting = !lockstep
	m := iterate.Message{Kind: iterate.MsgShares, Number: c.newest, Iterate: w.Iterate, Values: values}
	w.Send(c.tree.Parent, &m)
}

// complete reports whether new shares of iterate k have arrived from the whole subtree.
func (c *correction) complete(k iterate.Iteration) bool {
	return !slices.ContainsFunc(c.shares, func(s share) bool { return !s.fresh || s.label != k })
}

// solvable reports whether this peer is the root and can solve the coarse problem.
func (c *correction) solvable(w *peer) bool {
	if c.solver == nil {
		return false
	}
	if w.config.Scheme.Lockstep() {
		return c.complete(w.Iterate)
	}
	if c.solver.guard.paused(w.Iterate) {
		return false
	}
	if c.renewShares && c.sharesAreNew() { // request all shares again after a pause
		c.renewShares = false
		own := c.own.fresh
		c.useShares()
		c.own.fresh = own
		c.sendNewest(w)
	}
	return c.sharesAreNew()
}

// sharesAreNew reports whether every peer of the subtree has sent an unused share that includes the newest
// correction.
func (c *correction) sharesAreNew() bool {
	return !slices.ContainsFunc(c.shares, func(s share) bool { return !s.fresh || s.number != c.newest })
}

// useShares marks all shares as used.
func (c *correction) useShares() {
	for i := range c.shares {
		c.shares[i].fresh = false
	}
}

// solve solves the coarse problem at the root and sends the correction.
func (c *correction) solve(w *peer) {
	if w.config.Scheme.Lockstep() {
		c.zero = !c.solver.solve(w, c, c.values)
		c.known = true
		c.number = w.Iterate
		c.nextAt = max(w.Iterate+1, c.solver.guard.until)
		c.takesBack = c.solver.guard.grown
		c.useShares()
		c.sendLockstep(w)
		return
	}
	solved := c.solver.solve(w, c, c.values)
	if c.differenceFrom, c.differenceTo = 0, 0; solved {
		old := c.sums[c.last].values
		sum := c.addSum(c.newest + 1)
		for i, v := range c.values {
			sum[i] = old[i] + v
		}
	}
	c.renewShares = !solved
	if c.renewShares && !(c.solver.guard.grown && c.takeBack()) {
		return // the children wait, and make no shares
	}
	c.useShares()
	c.sendNewest(w)
}

// takeBack makes the sum before the last correction the newest one again. It returns false if that sum is not
// kept.
func (c *correction) takeBack() bool {
	if c.newest == 0 || c.takenBack == c.newest {
		return false
	}
	old := c.sum(c.newest - 1)
	if old == nil {
		return false
	}
	copy(c.addSum(c.newest+1), old)
	c.takenBack = c.newest
	c.solver.forecast.forget()
	return true
}

// catchUpOwn adds the missing corrections to the own points of the working array, which hold the own iterate.
// If the last correction is taken back, it restores the values before it.
func (c *correction) catchUpOwn(w *peer) {
	switch {
	case c.inIterate == c.newest:
	case c.takenBack == c.newest && c.inIterate+1 == c.newest && c.inIterate > 0:
		w.copyOwn(w.work, c.before)
	default:
		copy(c.before, w.cur)
		c.catchUp(w, w.inside, c.inIterate)
	}
}

// apply adds the correction of the iterate to the assembled values, in lockstep.
func (c *correction) apply(w *peer) {
	if c.takesBack && c.correctedIterate == w.Iterate {
		copy(w.work, c.before)
	}
	if !c.zero {
		copy(c.before, w.work)
		c.correctedIterate = w.Iterate + 1
		c.add(w, grown(w.own, w.config.Method.Overlap+1, w.config.Problem.N).From(w.ext.Lo), c.values)
	}
}

// addSum returns the array for the sum of a number, which becomes the newest.
func (c *correction) addSum(number uint64) []float64 {
	c.last = (c.last + 1) % len(c.sums)
	s := &c.sums[c.last]
	s.number, s.valid = number, true
	c.newest = number
	return s.values
}

// sum returns the sum of a number, or nil if it is not kept.
func (c *correction) sum(number uint64) []float64 {
	if i := slices.IndexFunc(c.sums, func(s correctionSum) bool { return s.valid && s.number == number }); i >= 0 {
		return c.sums[i].values
	}
	return nil
}

// catchUp adds the corrections after number to the points of a box of the region, ghosts included. If number is
// unknown here or too old, the values are used unchanged.
func (c *correction) catchUp(w *peer, b kernel.Box, number uint64) {
	if number >= c.newest {
		return
	}
	if c.differenceFrom != number || c.differenceTo != c.newest {
		old, sum := c.sum(number), c.sums[c.last].values
		if old == nil {
			return
		}
		for i := range c.values {
			c.values[i] = sum[i] - old[i]
		}
		c.differenceFrom, c.differenceTo = number, c.newest
	}
	c.add(w, b, c.values)
}
