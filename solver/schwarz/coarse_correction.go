package schwarz

import (
	"fmt"
	"sort"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// correction is a peer's part in the coarse correction of the Schwarz method. Shares of
// the problem travel up the tree of agreement; the root solves it and the correction
// comes down; peers add it at points that are not in contact, and project.
//
// In lockstep the correction of iterate k is part of relaxation k. Otherwise nobody waits
// for it. Corrections come one after the other, in rounds: a peer adds one when it
// assembles its next iterate, makes its next share of that, and no other before the next
// correction has come; the root solves when it has everybody's. What relaxation does in
// the meantime is the forecast's business. Who reads a patch adds to its values the
// corrections that they have not in them, so that every one counts once everywhere: the
// sums of all corrections up to a number are kept, and values tell which number it is.
type correction struct {
	grid       *coarseGrid
	subtreeBox kernel.Box // coarse points that this peer and those below it read
	shares     []share    // of this peer and those below it, by rank
	own        *share
	tree       iterate.Tree
	childBoxes []kernel.Box // held, by child
	solver     *coarseSolver

	defect       []float64      // of the region
	couplings    []faceCoupling // none in lockstep
	lower, upper []float64      // obstacles at the region's points and ghosts; nil: there is none
	buffer, line []float64

	// In lockstep.
	known            bool              // the correction of iterate number
	number           iterate.Iteration //
	values           []float64         // dense over held
	zero             bool              // it is 0
	before           []float64         // of the region, as the last correction found it
	correctedIterate iterate.Iteration // the iterate after that one; 0: there was none
	takesBack        bool              // that one is taken back: the relaxation begins with before
	nextAt           iterate.Iteration // no shares are wanted before this iterate

	// Otherwise.
	newest         uint64 // number of the newest sum
	inWork         uint64 // number of the sum in the working array
	inIterate      uint64 // in the own iterate
	sentToChildren uint64 // to the children
	sums           []correctionSum
	last           int    // place of the newest in sums
	differenceFrom uint64 // values is the difference of the sums of this number
	differenceTo   uint64 // and this one
	takenBack      uint64 // number of the newest sum that takes the one before it back
	awaiting       bool   // shares are under way, and not answered
	renewShares    bool   // root: after a pause all shares are asked for anew
}

// correctionSum is the sum of all corrections up to a number, dense over held.
type correctionSum struct {
	number uint64
	valid  bool
	values []float64
}

// sumsKept is how many sums are kept: what is older than that counts as it is.
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
	k := &correction{grid: g, defect: make([]float64, w.layout.Len())}
	k.tree = coarseTree(c, c.Rank)
	k.subtreeBox = g.subtreeBox(c, c.Rank)
	for _, q := range coarseSubtree(c, c.Rank) {
		k.shares = append(k.shares, newShare(g, c.Partition, q))
	}
	k.own = k.find(c.Rank)
	for _, q := range k.tree.Children {
		k.childBoxes = append(k.childBoxes, g.subtreeBox(c, q))
	}
	k.buffer = make([]float64, w.layout.N[0]+2)
	k.line = make([]float64, g.n[0]+2)
	k.values = make([]float64, k.subtreeBox.Points())
	if c.Scheme.Lockstep() {
		k.before = make([]float64, w.layout.Len())
	} else {
		k.before = make([]float64, w.ownPart.Len())
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

func newShare(g *coarseGrid, part problem.Partition, q iterate.Rank) share {
	box := g.coarseBox(grown(part.Box(q), 1, g.fine))
	return share{rank: q, box: box, values: make([]float64, shareFields*box.Points())}
}

// find is the share of a rank, nil if it is not among the members.
func (c *correction) find(q iterate.Rank) *share {
	i := sort.Search(len(c.shares), func(i int) bool { return c.shares[i].rank >= q })
	if i == len(c.shares) || c.shares[i].rank != q {
		return nil
	}
	return &c.shares[i]
}

// begin begins a run, or a time step.
func (c *correction) begin(w *peer) error {
	for i := range c.shares {
		c.shares[i].known, c.shares[i].fresh = false, false
	}
	c.known, c.nextAt, c.newest, c.inWork, c.inIterate, c.sentToChildren, c.awaiting, c.renewShares = false, 0, 0, 0, 0, 0, false, false
	c.differenceFrom, c.differenceTo, c.last, c.takenBack, c.correctedIterate, c.takesBack = 0, 0, 0, 0, 0, false
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

// bound evaluates the obstacles at the region's points and ghosts.
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
		b.Box.Each(func(d int, idx [3]int) bool {
			old[b.Index(idx)] = field.At(d)
			return true
		})
		b.EachGhost(func(at int, idx [3]int) bool {
			old[at] = f(p.At(idx[0], idx[1], idx[2]))
			return true
		})
		return old
	}
	c.lower, c.upper = fill(c.lower, p.Obstacle, b.Lower), fill(c.upper, p.Upper, b.Upper)
}

// due tells whether the relaxation that begins takes part in a coarse correction.
func (c *correction) due(w *peer) bool {
	if w.config.Scheme.Lockstep() {
		return w.Iterate >= c.nextAt
	}
	return !c.awaiting && !(c.solver != nil && c.solver.guard.paused(w.Iterate))
}

// share makes the own share and sends what can be sent.
func (c *correction) sendShare(w *peer) {
	c.own.measure(w)
	c.forwardShares(w)
}

// forward sends shares up, once those of all members have come.
func (c *correction) forwardShares(w *peer) {
	if c.solver != nil {
		return
	}
	lockstep := w.config.Scheme.Lockstep()
	if lockstep && !c.complete(w.Iterate) || !lockstep && (c.awaiting || !c.sharesAreNew()) {
		return
	}
	var values []byte
	for i := range c.shares {
		if s := &c.shares[i]; s.fresh {
			s.fresh = false
			values = s.encode(values)
		}
	}
	if len(values) == 0 {
		return
	}
	c.awaiting = !lockstep
	w.Send(c.tree.Parent, &iterate.Message{Kind: iterate.MsgShares, Number: c.newest, Iterate: w.Iterate, Values: values})
}

// complete tells whether the shares of all members at iterate k have come, new.
func (c *correction) complete(k iterate.Iteration) bool {
	for i := range c.shares {
		if s := &c.shares[i]; !s.fresh || s.label != k {
			return false
		}
	}
	return true
}

// solvable tells whether this is the root and the coarse problem is to be solved.
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
	if c.renewShares && c.sharesAreNew() {
		c.requestShares(w)
	}
	return c.sharesAreNew()
}

// renewed tells whether every member has told a share with the newest correction in it,
// which has not been used.
func (c *correction) sharesAreNew() bool {
	for i := range c.shares {
		if s := &c.shares[i]; !s.fresh || s.number != c.newest {
			return false
		}
	}
	return true
}

// resume has all shares made anew, after a pause.
func (c *correction) requestShares(w *peer) {
	c.renewShares = false
	for i := range c.shares {
		c.shares[i].fresh = &c.shares[i] == c.own && c.own.fresh
	}
	c.sendNewest(w)
}

// arrived tells, in lockstep, whether the correction of the iterate is there.
func (c *correction) hasArrived(w *peer) bool { return c.known && c.number == w.Iterate }

func (c *correction) solverPoints() int { return c.solver.workPoints() }

// agree takes a message of the coarse correction.
func (c *correction) receive(w *peer, q iterate.Rank, m *iterate.Message) error {
	if m.Kind == iterate.MsgCorrection {
		if q != c.tree.Parent {
			return fmt.Errorf("a coarse correction, which only the parent in the tree sends")
		}
		return c.receiveCorrection(w, m)
	}
	if c.tree.Child(q) < 0 {
		return fmt.Errorf("shares of the coarse problem, which only children in the tree send")
	}
	lockstep := w.config.Scheme.Lockstep()
	below := coarseSubtree(&w.config, q)
	err := readShares(m.Values, func(r iterate.Rank) *share {
		if j := sort.Search(len(below), func(j int) bool { return below[j] >= r }); j == len(below) || below[j] != r {
			return nil
		}
		return c.find(r)
	}, func(s *share) error {
		if lockstep && s.label != w.Iterate && s.label != w.Iterate+1 {
			return fmt.Errorf("a share of iterate %d, while this peer is at %d", s.label, w.Iterate)
		}
		if !lockstep && s.number != c.newest {
			return fmt.Errorf("a share with correction %d in it, while %d is the newest", s.number, c.newest)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.forwardShares(w)
	return nil
}

// correctionFrom takes a correction from the parent and passes it on.
func (c *correction) receiveCorrection(w *peer, m *iterate.Message) error {
	if len(m.Values) != 0 && len(m.Values) != 8*c.subtreeBox.Points() {
		return fmt.Errorf("a coarse correction of %d bytes; it must have %d: do all peers use the same method?", len(m.Values), 8*c.subtreeBox.Points())
	}
	if w.config.Scheme.Lockstep() {
		return c.receiveLockstep(w, m)
	}
	if !c.awaiting {
		return fmt.Errorf("a coarse correction that nobody asked for")
	}
	if m.Number != c.newest+1 && (m.Number != c.newest || len(m.Values) > 0) || m.Number > c.newest && len(m.Values) == 0 {
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
	for i := range c.shares {
		c.shares[i].fresh = false
	}
	c.sendNewest(w)
	return nil
}

// lockstepFrom takes the correction of iterate m.number.
func (c *correction) receiveLockstep(w *peer, m *iterate.Message) error {
	if iterate.Iteration(m.Number) != w.Iterate || c.known && c.number == w.Iterate || !c.own.known || c.own.label != w.Iterate {
		return fmt.Errorf("the coarse correction of iterate %d, while this peer is at %d", m.Number, w.Iterate)
	}
	if m.Iterate <= w.Iterate {
		return fmt.Errorf("the next coarse correction at iterate %d, while this peer is at %d", m.Iterate, w.Iterate)
	}
	if c.zero = len(m.Values) == 0; !c.zero {
		if err := readValues(c.values, m.Values); err != nil {
			return err
		}
	}
	c.known, c.number, c.nextAt, c.takesBack = true, w.Iterate, m.Iterate, m.Mark != 0
	c.sendLockstep(w)
	return nil
}

// pass tells the children the correction, in lockstep.
func (c *correction) sendLockstep(w *peer) {
	for i, q := range c.tree.Children {
		m := iterate.Message{Kind: iterate.MsgCorrection, Number: uint64(c.number), Iterate: c.nextAt}
		if c.takesBack {
			m.Mark = 1
		}
		if !c.zero {
			m.Values = c.encode(c.values, c.childBoxes[i])
		}
		w.Send(q, &m)
	}
}

// answer tells the children the newest sum, or that there is no new one, and has them
// make shares.
func (c *correction) sendNewest(w *peer) {
	for i, q := range c.tree.Children {
		m := iterate.Message{Kind: iterate.MsgCorrection, Number: c.newest}
		if c.takenBack == c.newest && c.newest > 0 {
			m.Mark = 1
		}
		if c.sentToChildren < c.newest {
			m.Values = c.encode(c.sums[c.last].values, c.childBoxes[i])
		}
		w.Send(q, &m)
	}
	c.sentToChildren = c.newest
}

// solve solves the coarse problem at the root and tells the correction.
func (c *correction) solve(w *peer) {
	if w.config.Scheme.Lockstep() {
		c.zero = !c.solver.solve(w, c, c.values)
		c.known, c.number, c.nextAt, c.takesBack = true, w.Iterate, c.solver.nextAt(w.Iterate), c.solver.guard.grown
		for i := range c.shares {
			c.shares[i].fresh = false
		}
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
	for i := range c.shares {
		c.shares[i].fresh = false
	}
	c.sendNewest(w)
}

// takeBack makes the sum of the corrections before the last one the newest one again, if it is
// still known.
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

// catchUpOwn adds to the own points of the working array, which are those of the own iterate, the
// corrections that it has not; where the last one is taken back, they are what it found.
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

// apply adds the correction of the iterate to what is assembled, in lockstep.
func (c *correction) apply(w *peer) {
	if c.takesBack && c.correctedIterate == w.Iterate {
		copy(w.work, c.before)
	}
	if !c.zero {
		copy(c.before, w.work)
		c.correctedIterate = w.Iterate + 1
		c.add(w, w.within(grown(w.own, w.overlap+1, w.config.Problem.N)), c.values)
	}
}

// append makes room for the sum of a number, now the newest.
func (c *correction) addSum(number uint64) []float64 {
	c.last = (c.last + 1) % len(c.sums)
	s := &c.sums[c.last]
	s.number, s.valid = number, true
	c.newest = number
	return s.values
}

// sum is that of a number, nil if it is not kept any more.
func (c *correction) sum(number uint64) []float64 {
	for i := range c.sums {
		if s := &c.sums[i]; s.valid && s.number == number {
			return s.values
		}
	}
	return nil
}

// catchUp adds to the points of a box of the region, ghosts among them, the corrections
// after number. What has one in it that is not known here, or is too old, counts as it is.
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
