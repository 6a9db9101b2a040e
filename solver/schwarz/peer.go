package schwarz

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// peer is a peer of the restricted additive Schwarz method (Cai and Sarkis, SIAM J.
// Sci. Comput. 21, 1999): it solves, by a method of its own, on its box grown by the
// overlap, with the newest values of its neighbours, and keeps its own points of the
// result. In lockstep, with a fixed amount of work, iterate k+1 is a function of the
// assembled iterate k (and of what its local solver has observed of its rate before).
type peer struct {
	iterate.Coordination
	region
	config  problem.Config
	faces   []face // of channels, in the same order
	overlap int
	exec    problem.Executor
	block   *problem.Discretization
	sweep   *kernel.Sweep // measures; nil until what the step starts from is known
	local   *localSolve
	patches []*patch
	coarse  *correction // nil: there is none

	work      []float64 // of the region: what is being solved
	cur, next []float64 // of the own box: iterate k; the one before
	spare     []float64
	captured  []float64 // of the snapshot in progress or agreed; may be cur
	stepStart []float64 // of the region, dense: what the time step starts from
	spent     float64   // by all relaxations, in sweeps over the own box

	relaxation relaxation
	choice     cycleChoice
}

// newPeer builds the region's arrays.
func newPeer(c problem.Config) (*peer, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := (Method{}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	w := &peer{Coordination: iterate.Coordination{Config: problem.Coordination(&c), Tree: problem.TreeOf(c.Partition, c.Rank)}, config: c, overlap: c.Method.Overlap, exec: c.Executor}
	w.Source = w
	if w.exec == nil {
		w.exec = problem.Sequential{}
	}
	// An exchange is worth many sweeps: all are judged, and the verdict on one is known
	// before the next is over.
	w.Checks = iterate.NewCheckInterval(max(1, c.CheckEvery), 1, c.MaxSweeps)
	if w.region, err = newRegion(c.Problem, c.Partition, c.Rank, w.overlap); err != nil {
		return nil, err
	}
	w.block = &problem.Discretization{Box: w.ext, Layout: w.layout, Exec: w.exec}
	if w.Steps.Total = c.Problem.Steps(); w.Steps.Total > 0 {
		if w.Steps.Previous, err = c.Problem.Before(w.own, c.Initial); err != nil {
			return nil, err
		}
		w.stepStart = make([]float64, w.layout.Points())
	}
	if w.coarse, err = newCorrection(w); err != nil {
		return nil, err
	}
	w.makePatches()
	w.work = make([]float64, w.layout.Len())
	w.cur, w.next = make([]float64, w.ownPart.Len()), make([]float64, w.ownPart.Len())
	w.relaxation.init(w)
	w.choice.init(w)
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// join makes the patches and the edges.
func (w *peer) makePatches() {
	c := &w.config
	for _, n := range c.Partition.Neighbours(c.Rank) {
		w.faces = append(w.faces, face{to: n, own: n.Layer(w.ownPart)})
		w.Channels = append(w.Channels, iterate.NewChannel(n.Rank, n.FaceBytes, c.Scheme.Between(c.Rank, n.Rank)))
	}
	for _, q := range overlapPeers(c.Partition, c.Rank, w.overlap) {
		p := newPatch(&w.region, c.Partition, q, w.overlap, c.Problem.N, c.Scheme.Between(c.Rank, q), w.patchHeader())
		if w.flexible() {
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

// schwarzLinks are the peers whose regions meet that of rank.
func linksOf(c *problem.Config, rank iterate.Rank) []iterate.Link {
	p, part := c.Problem, c.Partition
	g := region{own: part.Box(rank), ext: grown(part.Box(rank), c.Method.Overlap, p.N)}
	n, coarse := coarseGridOf(c)
	header := 0
	if coarse && !c.Scheme.Lockstep() {
		header = 8
	}
	var grid *coarseGrid
	if coarse {
		grid, _ = newCoarseGrid(p, n) // a problem that is refused is refused by New
	}
	faces := part.Neighbours(rank)
	var out []iterate.Link
	for _, q := range overlapPeers(part, rank, c.Method.Overlap) {
		s := c.Scheme.Between(rank, q)
		x := newPatch(&g, part, q, c.Method.Overlap, p.N, s, header)
		l := iterate.Link{Rank: q, Asynchronous: s.Asynchronous()}
		for range s.Slots() {
			l.Slots = append(l.Slots, x.Bytes)
			l.Sent = append(l.Sent, x.Bytes)
		}
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
		i := slices.IndexFunc(out, func(l iterate.Link) bool { return l.Rank >= q })
		if i < 0 {
			i = len(out)
		}
		if i == len(out) || out[i].Rank != q {
			out = slices.Insert(out, i, iterate.Link{Rank: q})
		}
		out[i].Agreement = max(out[i].Agreement, grid.messageBytes(c, max(rank, q)))
	}
	return out
}

// faceEdge is a face shared with a neighbour: along it frozen faces travel.
type face struct {
	to  problem.Neighbour
	own kernel.Box // own points of the face
}

// patchHeader is the length of what stands before the values of a patch.
func (w *peer) patchHeader() int {
	if w.coarse != nil && !w.config.Scheme.Lockstep() {
		return 8
	}
	return 0
}

func (w *peer) flexible() bool { return w.config.Method.Flexible }

// Next says what to do now; see Peer.
func (w *peer) Next(now time.Duration) iterate.Op {
	w.Now = now
	w.choice.observe(now)
	for {
		if w.Queued() {
			return w.Pop()
		}
		if w.Fault != nil {
			return iterate.Op{Kind: iterate.OpFail, Err: w.Fault}
		}
		if w.Done {
			return iterate.Op{Kind: iterate.OpDone}
		}
		if w.sweep == nil {
			return iterate.Op{Kind: iterate.OpWait} // for what the time step starts from, which is sure to come
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
			continue // the gate had something to say; that goes first
		}
		switch g {
		case iterate.ActionSweep, iterate.ActionSweepMeasure, iterate.ActionMeasure:
			if !w.Readable() {
				return w.Wait(now)
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

// assembleFrozen brings the frozen block and the frozen faces of the neighbours together.
func (w *peer) assembleCaptured() {
	w.copyOwn(w.work, w.captured)
	for i, f := range w.faces {
		b := w.inside
		if a := f.to.Axis; f.to.Side < 0 {
			b.Lo[a], b.Hi[a] = b.Lo[a]-1, b.Lo[a]
		} else {
			b.Lo[a], b.Hi[a] = b.Hi[a], b.Hi[a]+1
		}
		w.layout.Unpack(w.work, w.Channels[i].Agreed.Data, b)
	}
}

// Capture keeps the newest complete iterate as the block of a snapshot, without copying.
func (w *peer) Capture() {
	w.Release()
	w.captured, w.CapturedAt = w.cur, w.Iterate
}

func (w *peer) Release() {
	if w.captured != nil && !problem.SameArray(w.captured, w.cur) && !problem.SameArray(w.captured, w.next) {
		w.spare = w.captured
	}
	w.captured = nil
}

// Magnitudes are those of what was assembled to be measured.
func (w *peer) Magnitudes() kernel.Sum { return w.block.Magnitudes(w.work, w.inside) }

func (w *peer) PackCaptured(i int, dst []byte) {
	w.ownPart.Pack(dst, w.captured, w.faces[i].own)
}

// room is an array of the own box that the next iterate may go to.
func (w *peer) freeBuffer() []float64 {
	switch {
	case !problem.SameArray(w.next, w.captured):
		return w.next
	case w.spare != nil:
		out := w.spare
		w.spare = nil
		return out
	}
	return make([]float64, w.ownPart.Len())
}

// Receive takes the messages of this method.
func (w *peer) Receive(c *iterate.Channel, m *iterate.Message) error {
	switch m.Kind {
	case iterate.MsgLayers:
		return w.receiveLayers(c.Rank, m)
	case iterate.MsgShares, iterate.MsgCorrection:
		if w.coarse == nil {
			return fmt.Errorf("kind %d, while there is no coarse correction here: do all peers use the same method?", m.Kind)
		}
		return w.coarse.receive(w, c.Rank, m)
	}
	return fmt.Errorf("kind %d, which this method does not use", m.Kind)
}

// Solution writes the agreed block after OpDone, and the newest complete iterate before;
// of a nonstationary problem the end of the last complete step. See Peer.
func (w *peer) Solution(dst []float64) {
	if w.Steps.Total > 0 {
		copy(dst, w.Steps.Previous)
	} else {
		w.dense(dst)
	}
	(-w.config.Units.Scale).Apply(dst)
}

// answer is the block that was judged, and its iterate, or the newest one. In lockstep the
// verdict on iterate k comes while k+1 is made; it is k that met the tolerance.
func (w *peer) result() ([]float64, iterate.Iteration) {
	if k, ok := w.Rule.Accepted(); ok && w.Iterate == k+1 {
		return w.next, k
	}
	if w.captured != nil && w.Rule.Over() {
		return w.captured, w.CapturedAt
	}
	return w.cur, w.Iterate
}

// Outcome tells how the run ended, or how far it has come.
func (w *peer) Outcome() iterate.Outcome {
	o := w.Coordination.Outcome()
	_, o.Iterate = w.result()
	o.Work = w.spent
	return o
}

// dense writes the agreed or the newest block to a dense array.
func (w *peer) dense(dst []float64) {
	src, _ := w.result()
	l := w.ownPart
	for z := range l.N[2] {
		for y := range l.N[1] {
			from, to := l.Index(0, y, z), l.Dense(0, y, z)
			copy(dst[to:to+l.N[0]], src[from:from+l.N[0]])
		}
	}
}

// Box is the peer's own box.
func (w *peer) Box() problem.Box { return w.own }

// Links are the peers that this one exchanges anything with.
func (w *peer) Links() []iterate.Link { return linksOf(&w.config, w.config.Rank) }
