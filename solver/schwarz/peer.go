package schwarz

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// peer is a peer of the method. In lockstep, with a fixed number of inner cycles, iterate k+1 is a function of
// the assembled iterate k and of the convergence rate that its local solver has observed.
type peer struct {
	iterate.Coordination
	region
	config  problem.Config
	faces   []problem.Neighbour // of Channels, in the same order
	block   *problem.Discretization
	sweep   *kernel.Sweep // measures; nil until the start of the step is known
	local   *localSolve
	patches []*patch
	coarse  *correction // nil: none

	work      []float64 // of the region: the values being solved
	cur, next []float64 // of the own box: iterate k, and the one before
	spare     []float64
	captured  []float64 // of the current or agreed snapshot; may be cur
	stepStart []float64 // of the region, dense: the start of the time step

	relaxation relaxation
	choice     cycleChoice
}

// newPeer creates a peer and allocates its arrays.
func newPeer(c problem.Config) (problem.Peer, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := (Method{}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	w := &peer{
		Coordination: iterate.Coordination{Config: problem.Coordination(&c), Tree: problem.TreeOf(c.Partition, c.Rank)},
		config:       c,
	}
	w.Source = w
	// An exchange costs as much as many sweeps: every iterate is checked, and the check takes effect within the
	// next relaxation.
	w.Checks = iterate.NewCheckInterval(max(1, c.CheckEvery), 1, c.MaxSweeps)
	if w.region, err = newRegion(&c, c.Rank); err != nil {
		return nil, err
	}
	w.block = &problem.Discretization{Box: w.ext, Layout: w.layout, Executor: w.config.Executor, Allocate: c.Allocate}
	if w.Steps, err = c.TimeSteps(w.own); err != nil {
		return nil, err
	}
	if w.Steps.Total > 0 {
		w.stepStart = c.NewArray(w.layout.Points())
	}
	if w.coarse, err = newCorrection(w); err != nil {
		return nil, err
	}
	w.makePatches()
	w.work = c.NewArray(w.layout.Len())
	w.cur, w.next = c.NewArray(w.ownPart.Len()), c.NewArray(w.ownPart.Len())
	w.relaxation.init(w)
	w.choice.init(w)
	if c.MayDiverge() {
		w.Best.Begin(w.ownPart.Points(), c.NewArray)
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// makePatches creates the patches and the faces.
func (w *peer) makePatches() {
	c := &w.config
	w.faces = c.Partition.Neighbours(c.Rank)
	for _, n := range w.faces {
		w.Channels = append(w.Channels, iterate.NewChannel(n.Rank, n.FaceBytes, c.Scheme.Between(c.Rank, n.Rank)))
	}
	for _, q := range overlapPeers(c.Partition, c.Rank, c.Method.Overlap) {
		p := newPatch(&w.region, c, c.Rank, q, w.patchHeader())
		if w.config.Method.Flexible {
			p.LabelShift = partBits
		}
		if p.agreement = w.ChannelOf(q); p.agreement == nil && w.Steps.Total > 0 {
			p.agreement = &iterate.Channel{Rank: q}
			w.AgreementOnly = append(w.AgreementOnly, p.agreement)
		}
		w.patches, w.Halos = append(w.patches, p), append(w.Halos, p.Channel)
	}
	if w.coarse == nil {
		return
	}
	for _, q := range coarseLinks(c, c.Rank) {
		if w.ChannelOf(q) == nil {
			w.AgreementOnly = append(w.AgreementOnly, &iterate.Channel{Rank: q})
		}
	}
}

// linksOf returns the links of a rank.
func linksOf(c *problem.Config, rank iterate.Rank) []iterate.Link {
	p, part := c.Problem, c.Partition
	g := region{own: part.Box(rank), ext: grown(part.Box(rank), c.Method.Overlap, p.N)}
	n, coarse := coarseGridOf(c)
	header := patchHeader(c, coarse)
	var grid *coarseGrid
	if coarse {
		grid, _ = newCoarseGrid(p, n) // a problem that is refused is refused by New
	}
	faces := part.Neighbours(rank)
	var out []iterate.Link
	for _, q := range overlapPeers(part, rank, c.Method.Overlap) {
		s := c.Scheme.Between(rank, q)
		x := newPatch(&g, c, rank, q, header)
		l := iterate.Link{Rank: q, Asynchronous: s.Asynchronous(), Slots: slices.Repeat([]int{x.Bytes}, s.Slots())}
		l.Sent = l.Slots
		if p.Steps() > 0 {
			l.Agreement = iterate.MessageHeader + 8 + 8*max(x.recv.Points(), x.send.Points())
		}
		for _, f := range faces {
			if f.Rank == q {
				l.Agreement = max(l.Agreement, iterate.AgreementBytes(f.FaceBytes))
			}
		}
		out = append(out, l)
	}
	if grid == nil {
		return out
	}
	for _, q := range coarseLinks(c, rank) {
		byRank := func(l iterate.Link, q iterate.Rank) int { return cmp.Compare(l.Rank, q) }
		i, found := slices.BinarySearchFunc(out, q, byRank)
		if !found {
			out = slices.Insert(out, i, iterate.Link{Rank: q})
		}
		out[i].Agreement = max(out[i].Agreement, grid.messageBytes(c, max(rank, q)))
	}
	return out
}

// patchHeader returns the length of the header of a patch: the number of a correction outside lockstep.
func patchHeader(c *problem.Config, coarse bool) int {
	if coarse && !c.Scheme.Lockstep() {
		return 8
	}
	return 0
}

func (w *peer) patchHeader() int { return patchHeader(&w.config, w.coarse != nil) }

// Next returns the next operation (see iterate.Peer).
func (w *peer) Next(now time.Duration) iterate.Op {
	w.Now = now
	w.choice.observe(now)
	for {
		if op, ok := w.Pending(); ok {
			return op
		}
		if w.sweep == nil {
			return iterate.Op{Kind: iterate.OpWait} // for the start of the time step, which is sent reliably
		}
		if w.Rule.Over() {
			w.relaxation.abandon()
			w.finish()
			continue
		}
		if op, ok := w.relaxation.next(now); ok {
			return op
		}
		g := w.Rule.Next()
		if w.Queued() {
			continue // send the messages of the termination rule first
		}
		switch g {
		case iterate.ActionSweep, iterate.ActionSweepMeasure, iterate.ActionMeasure:
			if !w.Readable() {
				return w.Wait(now)
			}
			if g != iterate.ActionSweep {
				w.offer()
			}
			w.relaxation.begin(g)
		case iterate.ActionMeasureCaptured:
			w.assembleCaptured()
			w.relaxation.beginCaptured()
		case iterate.ActionDone:
			w.finish()
		default:
			return w.Wait(now)
		}
	}
}

// assembleCaptured combines the captured block and the captured faces of the neighbours.
func (w *peer) assembleCaptured() {
	w.copyOwn(w.work, w.captured)
	for i, f := range w.faces {
		b := w.inside
		if a := f.Axis; f.Side < 0 {
			b.Lo[a], b.Hi[a] = b.Lo[a]-1, b.Lo[a]
		} else {
			b.Lo[a], b.Hi[a] = b.Hi[a], b.Hi[a]+1
		}
		w.layout.Unpack(w.work, w.Channels[i].AgreedValues(), b)
	}
}

// Capture keeps the newest complete iterate as the block of a snapshot, without copying.
func (w *peer) Capture() {
	w.Release()
	w.captured, w.CapturedAt = w.cur, w.Iterate
}

// Release releases the captured block.
func (w *peer) Release() {
	if w.captured != nil && !problem.SameArray(w.captured, w.cur) && !problem.SameArray(w.captured, w.next) {
		w.spare = w.captured
	}
	w.captured = nil
}

// Magnitudes returns the magnitudes of the assembled values.
func (w *peer) Magnitudes() kernel.Sum { return w.block.Magnitudes(w.work, w.inside) }

// PackCaptured writes the captured values of face i to dst.
func (w *peer) PackCaptured(i int, dst []byte) {
	w.ownPart.Pack(dst, w.captured, w.faces[i].Layer(w.ownPart))
}

// freeBuffer returns an array of the own box for the next iterate.
func (w *peer) freeBuffer() []float64 {
	switch {
	case !problem.SameArray(w.next, w.captured):
		return w.next
	case w.spare != nil:
		out := w.spare
		w.spare = nil
		return out
	}
	return w.config.NewArray(w.ownPart.Len())
}

// Receive accepts the messages of this method.
func (w *peer) Receive(c *iterate.Channel, m *iterate.Message) error {
	switch m.Kind {
	case iterate.MsgLayers:
		return w.receiveLayers(c.Rank, m)
	case iterate.MsgShares, iterate.MsgCorrection:
		if w.coarse == nil {
			return fmt.Errorf("kind %d without a coarse correction; do all peers use the same method?", m.Kind)
		}
		return w.coarse.receive(w, c.Rank, m)
	}
	return fmt.Errorf("unexpected kind %d", m.Kind)
}

// Solution writes the agreed block after OpDone, and the newest complete iterate before. For a nonstationary
// problem it writes the end of the last complete step (see iterate.Peer).
func (w *peer) Solution(dst []float64) {
	switch {
	case w.Steps.Total > 0:
		copy(dst, w.Steps.Previous)
	case w.AnswersBest():
		copy(dst, w.Best.Values)
	default:
		w.dense(dst)
	}
	(-w.config.Units.Scale).Apply(dst)
}

// result returns the accepted block and its iterate, or the newest one. In lockstep, iterate k is accepted
// while k+1 is computed.
func (w *peer) result() ([]float64, iterate.Iteration) {
	if k, ok := w.Rule.Accepted(); ok && w.Iterate == k+1 {
		return w.next, k
	}
	if w.captured != nil && w.Rule.Over() {
		return w.captured, w.CapturedAt
	}
	return w.cur, w.Iterate
}

// Outcome returns the result of the run or its state so far.
func (w *peer) Outcome() iterate.Outcome {
	o := w.Coordination.Outcome()
	if !w.AnswersBest() {
		_, o.Iterate = w.result()
	}
	o.Work = w.Spent
	return o
}

// dense writes the agreed or the newest block to a dense array.
func (w *peer) dense(dst []float64) {
	src, _ := w.result()
	w.copyDense(dst, src)
}

// offer keeps the current iterate, whose residual will be measured, where it may become the answer.
func (w *peer) offer() {
	if a := w.Offer(); a != nil {
		w.copyDense(a, w.cur)
	}
}

// copyDense copies values of the own box to a dense array.
func (w *peer) copyDense(dst, src []float64) {
	l := w.ownPart
	method.CopyBox(dst, method.DenseLayout(l.N), l.Interior(), src, l, [3]int{})
}

// Values writes a part of the newest iterate; see problem.Peer.
func (w *peer) Values(dst []float64, part problem.Box) {
	src, _ := w.result()
	l := method.DenseLayout(part.Size())
	method.CopyBox(dst, l, l.Interior(), src, w.ownPart, part.From(w.own.Lo).Lo)
	(-w.config.Units.Scale).Apply(dst[:part.Points()])
}

// Box returns the peer's own box.
func (w *peer) Box() problem.Box { return w.own }

// Links returns the peers that this one exchanges messages with.
func (w *peer) Links() []iterate.Link { return linksOf(&w.config, w.config.Rank) }

// Describe returns the method's parameters (see problem.Peer).
func (w *peer) Describe() string {
	m := &w.config.Method
	out := []string{fmt.Sprintf("%s on boxes that overlap by %d", localName(m), m.Overlap)}
	if w.local != nil && w.local.solver.Name() == method.NameMultigrid {
		out = append(out, w.local.solver.Describe())
	}
	if w.choice.fixed > 0 {
		out = append(out, fmt.Sprintf("%d cycles per exchange", w.choice.fixed))
	} else {
		out = append(out, fmt.Sprintf("%.1f cycles per exchange at the end, by measurement", w.choice.chosen))
	}
	if c := w.coarse; c != nil {
		out = append(out, fmt.Sprintf("coarse correction on %d points", c.grid.n[0]*c.grid.n[1]*c.grid.n[2]))
	}
	return strings.Join(out, "; ")
}
