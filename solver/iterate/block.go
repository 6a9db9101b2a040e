package iterate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Block is one peer's part of an iteration x ← F(x): the unknowns that the peer owns, and the part of F that
// computes them. NewPeer returns a Peer for it, which runs in every scheme.
//
// A run converges if F is a contraction: in any norm for Synchronous, in a weighted maximum norm for schemes
// that read old values (El Tarazi, Numer. Math. 39, 1982; Bertsekas and Tsitsiklis, Parallel and Distributed
// Computation, 1989, section 6.2). The residual that ends a run is ‖x − F(x)‖₂ of the assembled vector,
// relative to that of the starting vector.
//
// The methods of one Block are never called concurrently.
type Block interface {
	// Values returns the number of unknowns of the block.
	Values() int
	// Neighbours returns the peers that this block exchanges values with. If a sends n values to b, b must
	// receive n values from a, in the same order. NewPeer calls it once.
	Neighbours() []Neighbour
	// Start writes the starting values of the block to x, which has Values elements, all 0.
	Start(x []float64)
	// Relax writes the block's part of F(x) to next. x holds the values of the block, ghosts values of
	// other blocks at the positions of Neighbour.Receive. The result must depend on x and ghosts only;
	// Relax must not change or keep them.
	Relax(next, x, ghosts []float64)
}

// Neighbour lists the values that a block exchanges with another peer.
type Neighbour struct {
	Rank Rank
	// Send holds the indices of the block's values that the neighbour reads.
	Send []int
	// Receive holds the positions in ghosts of the values that the neighbour sends, in its order. Each
	// position occurs once in all neighbours of a block.
	Receive []int
}

// bytes returns the length of a halo. It is the same in both directions because the slots of a session are.
func (n *Neighbour) bytes() int { return 8 * max(len(n.Send), len(n.Receive)) }

// BlockPeer is the Peer of a Block. NewPeer and FixedPoint.NewPeer make one.
type BlockPeer struct {
	Coordination
	first      int // of the block's unknowns, in a FixedPoint
	block      Block
	neighbours []Neighbour // of Halos, in the same order

	x, next   []float64 // iterate k; iterate k+1 while it is made or sent, k−1 otherwise
	ghosts    []float64
	capturedX []float64 // of the snapshot in progress or agreed
	imageOfX  []float64 // F of what was captured

	phase    phase
	measures bool
	sent     int // halos sent
	squares  kernel.Sum
	measured []float64 // the vector that was measured last

	referenceKnown bool // Reference is that of the iteration's starting vector
}

type phase int

const (
	phaseIdle            phase = iota
	phaseFirst                 // lockstep: iterate 0 is sent
	phaseRelax                 // the next iterate is to be made, or the residual measured
	phaseMeasure               // the residual of the current iterate is to be measured
	phaseMeasureCaptured       // that of the captured values
	phaseSend                  // the next iterate is sent
)

// NewPeer returns peer c.Rank of a run with block b. The Config of all peers must be equal but for Rank.
func NewPeer(c Config, b Block) (Peer, error) {
	if b == nil {
		return nil, errors.New("iterate: no block")
	}
	w, err := newBlockPeer(c, b)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func newBlockPeer(c Config, b Block) (p *BlockPeer, err error) {
	defer caught(&err)
	b = guarded{b, c.Rank}
	if err := c.check(); err != nil {
		return nil, err
	}
	w := &BlockPeer{
		Coordination: Coordination{
			Config: c, Tree: heapTree(c.Rank, c.Peers), Checks: NewCheckInterval(c.CheckEvery, c.Lag, c.MaxSweeps),
		},
		block: b, neighbours: b.Neighbours(),
	}
	n := b.Values()
	if n < 1 {
		return nil, fmt.Errorf("iterate: the block of rank %d has %d values; it must have 1 or more", c.Rank, n)
	}
	ghosts, err := w.checkNeighbours(n)
	if err != nil {
		return nil, err
	}
	w.Source = w
	w.connect()
	w.x, w.next, w.ghosts = make([]float64, n), make([]float64, n), make([]float64, ghosts)
	b.Start(w.x)
	if i := slices.IndexFunc(w.x, func(v float64) bool { return !kernel.Finite(v) }); i >= 0 {
		return nil, fmt.Errorf("iterate: starting value %d of rank %d is %v; it must be finite", i, c.Rank, w.x[i])
	}
	if c.Scheme.Lockstep() {
		w.phase = phaseFirst
	}
	w.Rule = NewTerminationRule(&w.Coordination)
	return w, nil
}

// connect makes the channels to the neighbours and along the tree.
func (w *BlockPeer) connect() {
	c := &w.Config
	for _, q := range w.neighbours {
		w.Halos = append(w.Halos, NewChannel(q.Rank, q.bytes(), c.Scheme.Between(c.Rank, q.Rank)))
	}
	w.Channels = slices.Clone(w.Halos)
	for _, q := range w.Tree.edges() {
		if findChannel(w.Channels, q) == nil {
			w.Channels = append(w.Channels, NewChannel(q, 0, c.Scheme.Between(c.Rank, q)))
		}
	}
}

// check returns an error for settings that no run can have, and sets defaults.
func (c *Config) check() error {
	switch {
	case c.Scheme == nil:
		return errors.New("iterate: a run needs a scheme")
	case c.Peers < 1 || c.Rank < 0 || int(c.Rank) >= c.Peers:
		return fmt.Errorf("iterate: rank %d of %d peers; ranks run from 0 to the number of peers minus 1",
			c.Rank, c.Peers)
	case !(c.Tolerance >= 0):
		return fmt.Errorf("iterate: the tolerance is %v; it must not be negative", c.Tolerance)
	case c.CheckEvery > 0 && c.Lag > c.CheckEvery:
		return fmt.Errorf("iterate: a lag of %d sweeps is longer than the %d sweeps between two checks",
			c.Lag, c.CheckEvery)
	}
	if c.Repeat <= 0 {
		c.Repeat = DefaultRepeat
	}
	if c.Reference == nil {
		c.Reference = func(norm float64) float64 { return norm }
	}
	return CheckScheme(c.Scheme, c.Peers)
}

// mostGhosts bounds the positions of ghosts, for which memory is allocated.
const mostGhosts = 1 << 33

// checkNeighbours returns the number of ghosts, and an error for invalid neighbours.
func (w *BlockPeer) checkNeighbours(values int) (ghosts int, err error) {
	taken := map[int]bool{}
	for i, q := range w.neighbours {
		same := func(p Neighbour) bool { return p.Rank == q.Rank }
		switch {
		case q.Rank < 0 || int(q.Rank) >= w.Config.Peers || q.Rank == w.Config.Rank:
			return 0, fmt.Errorf("iterate: rank %d has rank %d as a neighbour, in a run of %d peers",
				w.Config.Rank, q.Rank, w.Config.Peers)
		case len(q.Send) == 0 && len(q.Receive) == 0:
			return 0, fmt.Errorf("iterate: rank %d exchanges no values with its neighbour %d", w.Config.Rank, q.Rank)
		case slices.ContainsFunc(w.neighbours[:i], same):
			return 0, fmt.Errorf("iterate: rank %d has rank %d as a neighbour twice", w.Config.Rank, q.Rank)
		}
		for _, at := range q.Send {
			if at < 0 || at >= values {
				return 0, fmt.Errorf("iterate: rank %d sends value %d to rank %d; it has values 0 to %d",
					w.Config.Rank, at, q.Rank, values-1)
			}
		}
		for _, at := range q.Receive {
			switch {
			case at < 0 || at > mostGhosts:
				return 0, fmt.Errorf("iterate: rank %d receives from rank %d at position %d; positions are 0 to %d",
					w.Config.Rank, q.Rank, at, mostGhosts)
			case taken[at]:
				return 0, fmt.Errorf("iterate: rank %d receives at position %d twice; every ghost has one source",
					w.Config.Rank, at)
			}
			taken[at] = true
			ghosts = max(ghosts, at+1)
		}
	}
	return ghosts, nil
}

// heapTree returns the place of a rank in the binary tree of all ranks.
func heapTree(r Rank, peers int) Tree {
	t := Tree{Parent: (r - 1) / 2}
	if r == 0 {
		t.Parent = -1
	}
	for c := 2*r + 1; c <= 2*r+2 && int(c) < peers; c++ {
		t.Children = append(t.Children, c)
	}
	return t
}

// Next returns the next operation; see Peer.
func (w *BlockPeer) Next(now time.Duration) Op {
	w.Now = now
	for {
		if op, ok := w.Pending(); ok {
			return op
		}
		if w.Rule.Over() {
			w.phase = phaseIdle
			w.Done = true
			continue
		}
		if op, ok := w.proceed(now); ok {
			return op
		}
		if w.phase != phaseIdle {
			continue
		}
		action := w.Rule.Next()
		if w.Queued() {
			continue // messages of the rule precede the action
		}
		switch action {
		case ActionSweep, ActionSweepMeasure, ActionMeasure:
			if !w.Readable() {
				return w.Wait(now)
			}
			w.phase, w.measures = phaseRelax, action == ActionSweepMeasure
			if action == ActionMeasure {
				w.phase = phaseMeasure
			}
		case ActionMeasureCaptured:
			w.phase = phaseMeasureCaptured
		case ActionDone:
			w.Done = true
		default:
			return w.Wait(now)
		}
	}
}

// proceed returns the next operation of the phase.
func (w *BlockPeer) proceed(now time.Duration) (Op, bool) {
	switch w.phase {
	case phaseIdle:
		return Op{}, false
	case phaseFirst, phaseSend:
		label := w.Iterate
		if w.phase == phaseSend {
			label++
		}
		for w.sent < len(w.Halos) {
			w.sent++
			if !w.Rule.SkipSend(label) {
				return w.SendOp(now, w.Halos[w.sent-1], label), true
			}
		}
		w.sent = 0
		if w.phase == phaseSend {
			w.finish()
		} else {
			w.phase = phaseIdle
		}
		return Op{}, false
	}
	return Op{Kind: OpRelax, Part: int(w.phase), Points: w.block.Values()}, true
}

// Relax carries out an OpRelax; see Peer.
func (w *BlockPeer) Relax(op Op) {
	if op.Kind != OpRelax || op.Part != int(w.phase) {
		return
	}
	defer caught(&w.Fault)
	switch w.phase {
	case phaseRelax:
		w.readHalos()
		w.block.Relax(w.next, w.x, w.ghosts)
		w.refuseNotFinite()
		w.phase = phaseSend
		if w.measures {
			w.squares, w.measured = distance(w.x, w.next), w.x
		}
	case phaseMeasure:
		w.readHalos()
		w.measure(w.x)
	case phaseMeasureCaptured:
		for i, c := range w.Halos {
			w.unpack(i, c.Agreed.Data)
		}
		w.measure(w.capturedX)
	}
}

// refuseNotFinite ends the run as diverged if F has a value that is not finite. The unknown keeps its value until the run has ended,
// since other peers would take this one for one that sends what no peer has.
func (w *BlockPeer) refuseNotFinite() {
	for i, v := range w.next {
		if !kernel.Finite(v) {
			w.next[i] = w.x[i]
			w.Stop(w.Now, Diverged)
		}
	}
}

// readHalos copies the newest readable halos to the ghosts. Later arrivals are read by the next sweep.
func (w *BlockPeer) readHalos() {
	for i, c := range w.Halos {
		if s := c.Pick(w.Iterate); s != nil {
			w.unpack(i, s.Data)
		}
	}
}

// measure measures the residual of x with the ghosts.
func (w *BlockPeer) measure(x []float64) {
	if w.imageOfX == nil {
		w.imageOfX = make([]float64, len(x))
	}
	w.block.Relax(w.imageOfX, x, w.ghosts)
	squares := distance(x, w.imageOfX)
	w.phase, w.measured = phaseIdle, x
	if w.Iterate == 0 && !w.referenceKnown {
		w.Reference = squares // of the starting vector
	}
	w.Rule.Measured(&squares)
}

// finish makes the next iterate the current one.
func (w *BlockPeer) finish() {
	w.x, w.next = w.next, w.x
	w.Iterate++
	w.phase = phaseIdle
	if w.measures {
		w.measures = false
		w.Rule.Measured(&w.squares)
	}
}

// distance returns the exact sum of the squares of x − y.
func distance(x, y []float64) kernel.Sum {
	var s kernel.Sum
	for i, v := range x {
		d := v - y[i]
		s.Add(d * d)
	}
	return s
}

// Pack writes the halo of an OpSend; see Peer.
func (w *BlockPeer) Pack(op Op, dst []byte) {
	i := slices.IndexFunc(w.Halos, func(c *Channel) bool { return c.Rank == op.To })
	if i < 0 || op.Kind != OpSend {
		return
	}
	src := w.x
	if LabelIterate(op.Label) != w.Iterate {
		src = w.next
	}
	w.pack(i, dst, src)
}

func (w *BlockPeer) pack(i int, dst []byte, src []float64) {
	for _, at := range w.neighbours[i].Send {
		binary.LittleEndian.PutUint64(dst, math.Float64bits(src[at]))
		dst = dst[8:]
	}
	clear(dst)
}

func (w *BlockPeer) unpack(i int, pieces [][]byte) {
	positions := w.neighbours[i].Receive
	for _, data := range pieces {
		n := min(len(positions), len(data)/8)
		for _, at := range positions[:n] {
			w.ghosts[at] = ReadFloat(data)
			data = data[8:]
		}
		positions = positions[n:]
	}
}

func (w *BlockPeer) sweeping() bool { return w.phase == phaseRelax || w.phase == phaseSend }

// Halo passes in a halo; see Peer.
func (w *BlockPeer) Halo(_ time.Duration, q Rank, tag uint32, label uint64, data ...[]byte) error {
	c, s, err := w.HaloFrom(q, label, data, w.sweeping())
	if c == nil {
		return err
	}
	return c.Store(tag, s, w.Steps.Parity)
}

// Capture implements SnapshotSource.
func (w *BlockPeer) Capture() {
	w.capturedX = append(w.capturedX[:0], w.x...)
	w.CapturedAt = w.Iterate
}

// Release implements SnapshotSource. The next Capture overwrites the captured values.
func (w *BlockPeer) Release() {}

// PackCaptured implements SnapshotSource.
func (w *BlockPeer) PackCaptured(i int, dst []byte) {
	if i < len(w.neighbours) {
		w.pack(i, dst, w.capturedX)
	}
}

// Halt implements SnapshotSource: a sweep in progress is finished.
func (w *BlockPeer) Halt() Iteration {
	if w.sweeping() {
		return w.Iterate + 1
	}
	return w.Iterate
}

// Magnitudes implements SnapshotSource. A residual far below the rounding of the values themselves cannot be reached.
func (w *BlockPeer) Magnitudes() (s kernel.Sum) {
	for _, v := range w.measured {
		s.Add(v * v)
	}
	return s
}

// Receive implements SnapshotSource.
func (w *BlockPeer) Receive(_ *Channel, m *Message) error {
	return fmt.Errorf("message kind %d, which only methods of obstacle problems use", m.Kind)
}

// Solution writes the agreed values of the block after OpDone, the newest iterate before.
func (w *BlockPeer) Solution(dst []float64) {
	src := w.x
	if w.Done && !w.Config.Scheme.Lockstep() && w.capturedX != nil {
		src = w.capturedX
	}
	copy(dst, src)
}

// Box returns the unknowns of the block in a FixedPoint, as points of a line.
func (w *BlockPeer) Box() kernel.Box {
	return kernel.Box{Lo: [3]int{w.first, 0, 0}, Hi: [3]int{w.first + w.block.Values(), 1, 1}}
}

// Values writes the newest complete iterate of a part of the box to dst. Between OpKeep and the next call of Next, another
// goroutine may call it.
func (w *BlockPeer) Values(dst []float64, part kernel.Box) {
	copy(dst, w.x[part.Lo[0]-w.first:part.Hi[0]-w.first])
}

// Describe returns no parameters: a Block has those of its user.
func (w *BlockPeer) Describe() string { return "" }

// Links returns the links to the neighbours and to the adjacent peers in the tree.
func (w *BlockPeer) Links() []Link {
	var out []Link
	for _, c := range w.Channels {
		l := Link{Rank: c.Rank, Agreement: AgreementBytes(c.Bytes), Asynchronous: c.Scheme.Asynchronous()}
		if c.Bytes > 0 {
			for range c.Scheme.Slots() {
				l.Slots = append(l.Slots, c.Bytes)
			}
			l.Sent = l.Slots
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Link) int { return int(a.Rank - b.Rank) })
	return out
}
