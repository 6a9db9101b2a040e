package iterate

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// FixedPoint is an iteration x ← F(x) on one vector that any number of peers divide among them. Every process of a run
// has an equal one.
type FixedPoint struct {
	// Unknowns is the length of x.
	Unknowns int
	// Block returns the part of F that computes x[cuts[rank]] to x[cuts[rank+1]−1], where 0 = cuts[0] < cuts[1] < … =
	// Unknowns. A process calls it for blocks that it relaxes, repairs or evaluates, also for other cuts than those of the
	// run: with cuts of 0 and Unknowns the block is the whole iteration, without neighbours. Equal arguments give equal
	// blocks, and the starting values of blocks are those of one vector, whatever the cuts. It may be called from several goroutines at once and must not change cuts. An error refuses the division.
	Block func(cuts []int, rank Rank) (Block, error)
}

// Check returns an error for a FixedPoint that no run can have.
func (f *FixedPoint) Check() error {
	switch {
	case f.Block == nil:
		return errors.New("iterate: a fixed-point iteration needs a function that returns its blocks")
	case f.Unknowns < 1 || f.Unknowns > MaxUnknowns:
		return fmt.Errorf("iterate: an iteration of %d unknowns; it must have 1 to %d", f.Unknowns, MaxUnknowns)
	}
	return nil
}

// MaxUnknowns bounds the unknowns of an iteration.
const MaxUnknowns = 1 << 33

// CheckCuts returns an error unless every block has neighbours that agree: what one sends, the other one receives. Otherwise a run
// would not begin. It builds all blocks, one after the other.
func (f *FixedPoint) CheckCuts(cuts []int) error {
	type pair struct{ from, to Rank }
	sent, received := map[pair]int{}, map[pair]int{}
	var order []pair
	for r := range Rank(len(cuts) - 1) {
		b, err := f.Part(cuts, r)
		if err != nil {
			return err
		}
		w := &BlockPeer{Coordination: Coordination{Config: Config{Rank: r, Peers: len(cuts) - 1}}, neighbours: b.Neighbours()}
		if _, err := w.checkNeighbours(b.Values()); err != nil {
			return err
		}
		for _, q := range w.neighbours {
			for _, at := range q.Receive {
				if most := max(f.Unknowns, leastGhosts); at >= most {
					return fmt.Errorf("iterate: rank %d receives from rank %d at position %d; with %d unknowns positions are below %d",
						r, q.Rank, at, f.Unknowns, most)
				}
			}
			sent[pair{r, q.Rank}], received[pair{q.Rank, r}] = len(q.Send), len(q.Receive)
			order = append(order, pair{r, q.Rank}, pair{q.Rank, r})
		}
	}
	for _, p := range order {
		if sent[p] != received[p] {
			return fmt.Errorf("iterate: rank %d sends %d values to rank %d, which receives %d from it: check Neighbours",
				p.from, sent[p], p.to, received[p])
		}
	}
	return nil
}

// leastGhosts is the bound of positions of ghosts in small iterations.
const leastGhosts = 1 << 16

// Part returns the block of a rank, or an error if there is none or it does not have the length that the cuts give.
func (f *FixedPoint) Part(cuts []int, rank Rank) (Block, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if rank < 0 || int(rank) >= len(cuts)-1 {
		return nil, fmt.Errorf("iterate: rank %d of %d peers; ranks run from 0 to the number of peers minus 1", rank, len(cuts)-1)
	}
	b, err := f.block(cuts, rank)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("iterate: there is no block for rank %d with the cuts %v", rank, cuts)
	}
	if n := cuts[rank+1] - cuts[rank]; b.Values() != n {
		return nil, fmt.Errorf("iterate: the block of rank %d has %d values; the unknowns %d to %d are %d",
			rank, b.Values(), cuts[rank], cuts[rank+1]-1, n)
	}
	return b, nil
}

// block calls Block.
func (f *FixedPoint) block(cuts []int, rank Rank) (b Block, err error) {
	defer caught(&err)
	defer named("Block", rank)
	return f.Block(cuts, rank)
}

// Parts returns the blocks of all ranks, for example for iteratetest.Suite.
func (f *FixedPoint) Parts(cuts []int) ([]Block, error) {
	out := make([]Block, max(0, len(cuts)-1))
	for r := range out {
		var err error
		if out[r], err = f.Part(cuts, Rank(r)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// whole returns the block of all unknowns, whose panics are PanicErrors.
func (f *FixedPoint) whole() (Block, error) {
	b, err := f.Part([]int{0, f.Unknowns}, 0)
	return guarded{b, 0}, err
}

// Start writes the starting vector to x, which has Unknowns elements.
func (f *FixedPoint) Start(x []float64) (err error) {
	defer caught(&err)
	b, err := f.whole()
	if err != nil {
		return err
	}
	clear(x)
	b.Start(x)
	return nil
}

// Residual returns the relative residual ‖x − F(x)‖₂/‖x⁰ − F(x⁰)‖₂ with the starting vector x⁰, and the largest
// |x_i − F(x)_i|. The sums are exact.
func (f *FixedPoint) Residual(x []float64) (relative, largest float64, err error) {
	defer caught(&err)
	b, err := f.whole()
	if err != nil {
		return 0, 0, err
	}
	if len(x) != f.Unknowns {
		return 0, 0, fmt.Errorf("iterate: a vector of %d values to evaluate; the iteration has %d unknowns", len(x), f.Unknowns)
	}
	next, start := make([]float64, len(x)), make([]float64, len(x))
	b.Start(start)
	b.Relax(next, start, nil)
	reference := distance(start, next)
	b.Relax(next, x, nil)
	squares := distance(x, next)
	for i, v := range x {
		largest = math.Max(largest, math.Abs(v-next[i]))
	}
	return Relative(Norm(&squares), Norm(&reference)), largest, nil
}

// reference returns the share of a block in ‖x⁰ − F(x⁰)‖₂².
func (f *FixedPoint) reference(cuts []int, rank Rank, b Block) (kernel.Sum, error) {
	start := func(b Block) []float64 {
		x := make([]float64, b.Values())
		b.Start(x)
		return x
	}
	halos := map[Rank][]float64{}
	for _, q := range b.Neighbours() {
		other, err := f.Part(cuts, q.Rank)
		if err != nil {
			return kernel.Sum{}, err
		}
		halos[q.Rank] = Halo(other, rank, start(guarded{other, q.Rank}))
	}
	ghosts, err := ghostsOf(b, halos)
	if err != nil {
		return kernel.Sum{}, err
	}
	x, next := start(b), make([]float64, b.Values())
	b.Relax(next, x, ghosts)
	return distance(x, next), nil
}

// NewPeer returns peer c.Rank of a run that divides x at cuts. initial holds the starting values of the block, which it does
// not keep; nil: those of the block. Residuals are relative to the starting vector of the iteration in both cases. The Config
// of all peers must be equal but for Rank, and c.Peers is set to the number of parts.
func (f *FixedPoint) NewPeer(c Config, cuts []int, initial []float64) (p *BlockPeer, err error) {
	defer caught(&err)
	c.Peers = len(cuts) - 1
	b, err := f.Part(cuts, c.Rank)
	if err != nil {
		return nil, err
	}
	from := b
	if initial != nil {
		if len(initial) != b.Values() {
			return nil, fmt.Errorf("iterate: %d starting values for the %d unknowns of rank %d", len(initial), b.Values(), c.Rank)
		}
		from = StartFrom(b, initial)
	}
	if p, err = newBlockPeer(c, from); err != nil {
		return nil, err
	}
	p.first = cuts[c.Rank]
	if initial != nil {
		if p.Reference, err = f.reference(cuts, c.Rank, guarded{b, c.Rank}); err != nil {
			return nil, err
		}
		p.referenceKnown = true
	}
	return p, nil
}

// Links returns the links of a rank in a run that divides x at cuts, as BlockPeer.Links does, nil if there is no such block.
func (f *FixedPoint) Links(s Scheme, cuts []int, rank Rank) []Link {
	b, err := f.Part(cuts, rank)
	if err != nil {
		return nil
	}
	w := &BlockPeer{
		Coordination: Coordination{
			Config: Config{Rank: rank, Peers: len(cuts) - 1, Scheme: s}, Tree: heapTree(rank, len(cuts)-1),
		},
		neighbours: b.Neighbours(),
	}
	w.connect()
	return w.Links()
}
