package solver

import (
	"fmt"
	"sort"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// correction is a peer's part in the coarse correction of the Schwarz method. Shares of
// the problem travel up the tree of agreement; the root solves it and the correction
// comes down; peers add it at points that are not in contact, and project.
//
// In lockstep the correction of iterate k is part of relaxation k. Otherwise nobody waits
// for it: it comes as the sum of all corrections so far and its number. A share tells
// which number its iterate has in it, as do the values of a patch, so that every
// correction counts once everywhere: the root adds to a share what the later ones will
// have done to it, and who reads a patch adds the later ones to its values. Every peer
// has at most one message of shares under way; the answer to it is the newest sum.
type correction struct {
	grid     *coarseGrid
	held     kernel.Box // coarse points that this peer and those below it read
	members  []share    // of this peer and those below it, by rank
	own      *share
	branches []branch // by child
	root     *coarseRoot

	defect       []float64 // of the region
	lower, upper []float64 // obstacles at the region's points and ghosts; nil: there is none
	buffer, line []float64

	// In lockstep.
	have   bool      // the correction of iterate number
	number Iteration //
	values []float64 // dense over held
	none   bool      // it is 0
	nextAt Iteration // no shares are wanted before this iterate

	// Otherwise.
	newest  uint64 // number of the newest sum
	at      uint64 // number of the sum in the working array
	in      uint64 // in the own iterate
	sums    []correctionSum
	last    int    // place of the newest in sums
	since   uint64 // values is the difference of the sums of this number
	until   uint64 // and this one
	waits   bool   // shares are under way, and not answered
	resumes bool   // root: after a pause all shares are asked for anew
}

// correctionSum is the sum of all corrections up to a number, dense over held.
type correctionSum struct {
	number uint64
	have   bool
	values []float64
}

// branch is what a child of the tree needs.
type branch struct {
	held kernel.Box
	owed bool // its last shares have not been answered
}

// sumsKept is how many sums are kept: what is older than that counts as it is.
const sumsKept = 16

func newCorrection(w *schwarz) (*correction, error) {
	c := &w.config
	n, ok := c.coarseSize()
	if !ok {
		return nil, nil
	}
	g, err := newCoarseGrid(c.Problem, n)
	if err != nil {
		return nil, err
	}
	k := &correction{grid: g, defect: make([]float64, w.layout.Len())}
	k.held = g.held(c.Partition, c.Rank, w.overlap)
	for _, q := range c.Partition.below(c.Rank) {
		k.members = append(k.members, newShare(g, c.Partition, q))
	}
	k.own = k.find(c.Rank)
	for _, q := range w.tree.children {
		k.branches = append(k.branches, branch{held: g.held(c.Partition, q, w.overlap)})
	}
	k.buffer = make([]float64, w.layout.N[0]+2)
	k.line = make([]float64, g.n[0]+2)
	k.values = make([]float64, k.held.Points())
	if !inLockstep(c.Scheme) {
		for range sumsKept {
			k.sums = append(k.sums, correctionSum{values: make([]float64, k.held.Points())})
		}
	}
	if w.tree.parent < 0 {
		k.root = newCoarseRoot(w, k)
	}
	return k, nil
}

func newShare(g *coarseGrid, part Partition, q Rank) share {
	box := g.piece(part.Box(q))
	return share{rank: q, box: box, values: make([]float64, shareFields*box.Points()), weights: g.shares(part.Box(q), box)}
}

// find is the share of a rank, nil if it is not among the members.
func (c *correction) find(q Rank) *share {
	i := sort.Search(len(c.members), func(i int) bool { return c.members[i].rank >= q })
	if i == len(c.members) || c.members[i].rank != q {
		return nil
	}
	return &c.members[i]
}

// begin begins a run, or a time step.
func (c *correction) begin(w *schwarz) error {
	for i := range c.members {
		c.members[i].have, c.members[i].fresh = false, false
	}
	c.have, c.nextAt, c.newest, c.at, c.in, c.waits, c.resumes = false, 0, 0, 0, 0, false, false
	c.since, c.until, c.last = 0, 0, 0
	for i := range c.sums {
		c.sums[i].have = i == 0
		c.sums[i].number = 0
	}
	if len(c.sums) > 0 {
		clear(c.sums[0].values)
	}
	for i := range c.branches {
		c.branches[i].owed = false
	}
	c.bound(w)
	if c.root != nil {
		return c.root.begin(w)
	}
	return nil
}

// bound evaluates the obstacles at the region's points and ghosts.
func (c *correction) bound(w *schwarz) {
	b := w.block
	p := b.problem
	fill := func(old []float64, f Function, field kernel.Field) []float64 {
		if f == nil {
			return nil
		}
		if old == nil {
			old = make([]float64, w.layout.Len())
		}
		b.box.each(func(d int, idx [3]int) bool {
			old[b.index(idx)] = field.At(d)
			return true
		})
		b.eachGhost(func(at int, idx [3]int) bool {
			old[at] = f(p.At(idx[0], idx[1], idx[2]))
			return true
		})
		return old
	}
	c.lower, c.upper = fill(c.lower, p.Obstacle, b.lower), fill(c.upper, p.Upper, b.upper)
}

// due tells whether the relaxation that begins takes part in a coarse correction.
func (c *correction) due(w *schwarz) bool {
	if inLockstep(w.config.Scheme) {
		return w.iterate >= c.nextAt
	}
	return true // it may be sent later, with those from below; then it is as new as can be
}

// share makes the own share and sends what can be sent.
func (c *correction) share(w *schwarz) {
	c.own.measure(w)
	c.forward(w)
}

// forward sends shares up: in lockstep once those of all members have come, otherwise
// those that are new, one message at a time.
func (c *correction) forward(w *schwarz) {
	if c.root != nil {
		return
	}
	lockstep := inLockstep(w.config.Scheme)
	if lockstep && !c.complete(w.iterate) || c.waits {
		return
	}
	var values []byte
	for i := range c.members {
		if s := &c.members[i]; s.fresh {
			s.fresh = false
			values = s.append(values)
		}
	}
	if len(values) == 0 {
		return
	}
	c.waits = !lockstep
	w.tellParent(&message{kind: msgShares, number: c.newest, iterate: w.iterate, values: values})
}

// complete tells whether the shares of all members at iterate k have come, new.
func (c *correction) complete(k Iteration) bool {
	for i := range c.members {
		if s := &c.members[i]; !s.fresh || s.label != k {
			return false
		}
	}
	return true
}

// solvable tells whether this is the root and the coarse problem is to be solved.
func (c *correction) solvable(w *schwarz) bool {
	if c.root == nil {
		return false
	}
	if inLockstep(w.config.Scheme) {
		return c.complete(w.iterate)
	}
	if c.root.guard.paused(w.iterate) {
		return false
	}
	if c.resumes {
		c.resume(w)
	}
	if !c.known() {
		return false
	}
	for i := range c.members {
		if s := &c.members[i]; s.fresh && s != c.own {
			return true // the own share alone is no news of the others
		}
	}
	return false
}

// known tells whether every member has told a share.
func (c *correction) known() bool {
	for i := range c.members {
		if !c.members[i].have {
			return false
		}
	}
	return true
}

// resume forgets the shares from before a pause, and has new ones sent.
func (c *correction) resume(w *schwarz) {
	c.resumes = false
	for i := range c.members {
		c.members[i].have = &c.members[i] == c.own
	}
	for i := range c.branches {
		if c.branches[i].owed {
			c.answer(w, i)
		}
	}
}

// arrived tells, in lockstep, whether the correction of the iterate is there.
func (c *correction) arrived(w *schwarz) bool { return c.have && c.number == w.iterate }

func (c *correction) rootPoints() int { return c.root.points() }

// agree takes a message of the coarse correction.
func (c *correction) agree(w *schwarz, q Rank, m *message) error {
	if m.kind == msgCorrection {
		if q != w.tree.parent {
			return fmt.Errorf("a coarse correction, which only the parent in the tree sends")
		}
		return c.correctionFrom(w, m)
	}
	i := w.tree.child(q)
	if i < 0 {
		return fmt.Errorf("shares of the coarse problem, which only children in the tree send")
	}
	lockstep := inLockstep(w.config.Scheme)
	below := w.config.Partition.below(q)
	err := readShares(m.values, func(r Rank) *share {
		if j := sort.Search(len(below), func(j int) bool { return below[j] >= r }); j == len(below) || below[j] != r {
			return nil
		}
		return c.find(r)
	}, func(s *share) error {
		if lockstep && s.label != w.iterate && s.label != w.iterate+1 {
			return fmt.Errorf("a share of iterate %d, while this peer is at %d", s.label, w.iterate)
		}
		if !lockstep && s.number > c.newest {
			return fmt.Errorf("a share with correction %d in it, while %d is the newest", s.number, c.newest)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if lockstep {
		c.forward(w)
		return nil
	}
	// Those below a child may be newer to it than its message: as long as the root lacks
	// shares, it asks for more.
	if c.branches[i].owed = true; m.number < c.newest || c.root != nil && !c.known() {
		c.answer(w, i)
	}
	c.forward(w)
	return nil
}

// correctionFrom takes a correction from the parent and passes it on.
func (c *correction) correctionFrom(w *schwarz, m *message) error {
	if len(m.values) != 0 && len(m.values) != 8*c.held.Points() {
		return fmt.Errorf("a coarse correction of %d bytes; it must have %d: do all peers use the same method?", len(m.values), 8*c.held.Points())
	}
	if inLockstep(w.config.Scheme) {
		return c.lockstepFrom(w, m)
	}
	if !c.waits {
		return fmt.Errorf("a coarse correction that nobody asked for")
	}
	c.waits = false
	if m.number > c.newest && len(m.values) > 0 {
		if m.number > 1<<62 {
			return fmt.Errorf("coarse correction number %d", m.number)
		}
		if err := readValues(c.append(m.number), m.values); err != nil {
			return err
		}
	}
	for i := range c.branches {
		if c.branches[i].owed {
			c.answer(w, i)
		}
	}
	c.forward(w)
	return nil
}

// lockstepFrom takes the correction of iterate m.number.
func (c *correction) lockstepFrom(w *schwarz, m *message) error {
	if Iteration(m.number) != w.iterate || c.have && c.number == w.iterate || !c.own.have || c.own.label != w.iterate {
		return fmt.Errorf("the coarse correction of iterate %d, while this peer is at %d", m.number, w.iterate)
	}
	if m.iterate <= w.iterate {
		return fmt.Errorf("the next coarse correction at iterate %d, while this peer is at %d", m.iterate, w.iterate)
	}
	if c.none = len(m.values) == 0; !c.none {
		if err := readValues(c.values, m.values); err != nil {
			return err
		}
	}
	c.have, c.number, c.nextAt = true, w.iterate, m.iterate
	c.pass(w)
	return nil
}

// pass tells the children the correction, in lockstep.
func (c *correction) pass(w *schwarz) {
	for i, q := range w.tree.children {
		m := message{kind: msgCorrection, number: uint64(c.number), iterate: c.nextAt}
		if !c.none {
			m.values = c.cut(c.values, c.branches[i].held)
		}
		w.tell(q, &m)
	}
}

// answer tells child i the newest sum.
func (c *correction) answer(w *schwarz, i int) {
	c.branches[i].owed = false
	m := message{kind: msgCorrection, number: c.newest}
	if c.newest > 0 {
		m.values = c.cut(c.sums[c.last].values, c.branches[i].held)
	}
	w.tell(w.tree.children[i], &m)
}

// solve solves the coarse problem at the root and tells the correction.
func (c *correction) solve(w *schwarz) {
	if inLockstep(w.config.Scheme) {
		c.none = !c.root.solve(w, c, c.values)
		c.have, c.number, c.nextAt = true, w.iterate, c.root.nextAt(w.iterate)
		for i := range c.members {
			c.members[i].fresh = false
		}
		c.pass(w)
		return
	}
	solved := c.root.solve(w, c, c.values)
	if c.since, c.until = 0, 0; solved {
		old := c.sums[c.last].values
		sum := c.append(c.newest + 1)
		for i, v := range c.values {
			sum[i] = old[i] + v
		}
	}
	c.resumes = !solved
	for i := range c.members {
		c.members[i].fresh = false
	}
	for i := range c.branches {
		if c.branches[i].owed {
			c.answer(w, i)
		}
	}
}

// apply adds the correction of the iterate to what is assembled, in lockstep.
func (c *correction) apply(w *schwarz) {
	if !c.none {
		c.add(w, w.within(grow(w.own, w.overlap+1, w.config.Problem.N)), c.values)
	}
}

// append makes room for the sum of a number, now the newest.
func (c *correction) append(number uint64) []float64 {
	c.last = (c.last + 1) % len(c.sums)
	s := &c.sums[c.last]
	s.number, s.have = number, true
	c.newest = number
	return s.values
}

// sum is that of a number, nil if it is not kept any more.
func (c *correction) sum(number uint64) []float64 {
	for i := range c.sums {
		if s := &c.sums[i]; s.have && s.number == number {
			return s.values
		}
	}
	return nil
}

// catchUp adds to the points of a box of the region, ghosts among them, the corrections
// after number. What has one in it that is not known here, or is too old, counts as it is.
func (c *correction) catchUp(w *schwarz, b kernel.Box, number uint64) {
	if number >= c.newest {
		return
	}
	if c.since != number || c.until != c.newest {
		old, sum := c.sum(number), c.sums[c.last].values
		if old == nil {
			return
		}
		for i := range c.values {
			c.values[i] = sum[i] - old[i]
		}
		c.since, c.until = number, c.newest
	}
	c.add(w, b, c.values)
}
