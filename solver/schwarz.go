package solver

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// schwarz is a peer of the restricted additive Schwarz method (Cai and Sarkis, SIAM J.
// Sci. Comput. 21, 1999): it solves, by a method of its own, on its box grown by the
// overlap, with the newest values of its neighbours, and keeps its own points of the
// result. In lockstep, with a fixed amount of work, iterate k+1 is a function of the
// assembled iterate k (and of what its local solver has observed of its rate before).
type schwarz struct {
	party
	region
	config  Config
	edges   []faceEdge // of channels, in the same order
	overlap int
	exec    Executor
	block   *block
	sweep   *kernel.Sweep // measures; nil until what the step starts from is known
	local   *localSolve
	patches []*patch
	coarse  *correction // nil: there is none

	work      []float64 // of the region: what is being solved
	cur, next []float64 // of the own box: iterate k; the one before
	spare     []float64
	frozen    []float64 // of the snapshot in progress or agreed; may be cur
	past      []float64 // of the region, dense: what the time step starts from
	spent     float64   // by all relaxations, in sweeps over the own box

	pass schwarzPass
	pace workPace
}

// newSchwarz builds the region's arrays.
func newSchwarz(c Config) (*schwarz, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := (additiveSchwarz{}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	w := &schwarz{party: party{run: run(&c), tree: treeOf(c.Partition, c.Rank)}, config: c, overlap: c.Method.Overlap, exec: c.Executor}
	w.subject = w
	if w.exec == nil {
		w.exec = Sequential{}
	}
	// An exchange is worth many sweeps: all are judged, and the verdict on one is known
	// before the next is over.
	w.rhythm = newRhythm(max(1, c.CheckEvery), 1, c.MaxSweeps)
	if w.region, err = newRegion(c.Problem, c.Partition, c.Rank, w.overlap); err != nil {
		return nil, err
	}
	w.block = &block{box: w.ext, layout: w.layout, exec: w.exec}
	if w.steps.of = c.Problem.Steps(); w.steps.of > 0 {
		if w.steps.before, err = c.Problem.before(w.own, c.Initial); err != nil {
			return nil, err
		}
		w.past = make([]float64, w.layout.Points())
	}
	if w.coarse, err = newCorrection(w); err != nil {
		return nil, err
	}
	w.join()
	w.work = make([]float64, w.layout.Len())
	w.cur, w.next = make([]float64, w.ownPart.Len()), make([]float64, w.ownPart.Len())
	w.pass.init(w)
	w.pace.init(w)
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// join makes the patches and the edges.
func (w *schwarz) join() {
	c := &w.config
	for _, n := range c.Partition.Neighbours(c.Rank) {
		w.edges = append(w.edges, faceEdge{to: n, own: n.layer(w.ownPart)})
		w.channels = append(w.channels, newChannel(n.Rank, n.FaceBytes, Between(c.Scheme, c.Rank, n.Rank)))
	}
	for _, q := range meeting(c.Partition, c.Rank, w.overlap) {
		p := newPatch(&w.region, c.Partition, q, w.overlap, c.Problem.N, Between(c.Scheme, c.Rank, q), w.patchHeader())
		if w.flexible() {
			p.shift = partBits
		}
		if p.edge = w.channelOf(q); p.edge == nil && w.steps.of > 0 {
			p.edge = &channel{rank: q}
			w.corners = append(w.corners, p.edge)
		}
		w.patches, w.halos = append(w.patches, p), append(w.halos, p.channel)
	}
	if w.coarse == nil {
		return
	}
	for _, q := range coarseLinks(c, c.Rank) {
		if w.channelOf(q) == nil {
			w.corners = append(w.corners, &channel{rank: q})
		}
	}
}

// schwarzLinks are the peers whose regions meet that of rank.
func schwarzLinks(c *Config, rank Rank) []Link {
	p, part := c.Problem, c.Partition
	g := region{own: part.Box(rank), ext: grow(part.Box(rank), c.Method.Overlap, p.N)}
	n, coarse := coarseGridOf(c)
	header := 0
	if coarse && !inLockstep(c.Scheme) {
		header = 8
	}
	var grid *coarseGrid
	if coarse {
		grid, _ = newCoarseGrid(p, n) // a problem that is refused is refused by New
	}
	faces := part.Neighbours(rank)
	var out []Link
	for _, q := range meeting(part, rank, c.Method.Overlap) {
		s := Between(c.Scheme, rank, q)
		x := newPatch(&g, part, q, c.Method.Overlap, p.N, s, header)
		l := Link{Rank: q, Asynchronous: s.Asynchronous()}
		for range s.Slots() {
			l.Slots = append(l.Slots, x.bytes)
			l.Sent = append(l.Sent, x.bytes)
		}
		if p.Steps() > 0 {
			l.Agreement = messageHeader + 8 + 8*max(x.recv.Points(), x.send.Points())
		}
		for _, f := range faces {
			if f.Rank == q {
				l.Agreement = max(l.Agreement, AgreementBytes(f.FaceBytes))
			}
		}
		out = append(out, l)
	}
	if grid == nil {
		return out
	}
	for _, q := range coarseLinks(c, rank) {
		i := slices.IndexFunc(out, func(l Link) bool { return l.Rank >= q })
		if i < 0 {
			i = len(out)
		}
		if i == len(out) || out[i].Rank != q {
			out = slices.Insert(out, i, Link{Rank: q})
		}
		out[i].Agreement = max(out[i].Agreement, grid.messageBytes(c, max(rank, q)))
	}
	return out
}

// faceEdge is a face shared with a neighbour: along it frozen faces travel.
type faceEdge struct {
	to  Neighbour
	own kernel.Box // own points of the face
}

// patchHeader is the length of what stands before the values of a patch.
func (w *schwarz) patchHeader() int {
	if w.coarse != nil && !inLockstep(w.config.Scheme) {
		return 8
	}
	return 0
}

func (w *schwarz) flexible() bool { return w.config.Method.Flexible }

// Next says what to do now; see Peer.
func (w *schwarz) Next(now time.Duration) Op {
	w.now = now
	w.pace.asked(now)
	for {
		if len(w.outbox) > 0 {
			return w.popOutbox()
		}
		if w.fault != nil {
			return Op{Kind: OpFail, Err: w.fault}
		}
		if w.done {
			return Op{Kind: OpDone}
		}
		if w.sweep == nil {
			return Op{Kind: OpWait} // for what the time step starts from, which is sure to come
		}
		if w.end.over() {
			w.pass.abandon()
			w.conclude()
			continue
		}
		if op, ok := w.pass.next(now); ok {
			return op
		}
		g := w.end.gate()
		if len(w.outbox) > 0 {
			continue // the gate had something to say; that goes first
		}
		switch g {
		case gateSweep, gateSweepMeasure, gateMeasureCurrent:
			if !w.readable() {
				return w.wait(now)
			}
			w.pass.begin(g)
		case gateMeasureFrozen:
			w.assembleFrozen()
			w.pass.beginFrozen()
		case gateDone:
			w.conclude()
		default:
			return w.wait(now)
		}
	}
}

// assembleFrozen brings the frozen block and the frozen faces of the neighbours together.
func (w *schwarz) assembleFrozen() {
	w.copyOwn(w.work, w.frozen)
	for i, f := range w.edges {
		b := w.inside
		if a := f.to.Axis; f.to.Side < 0 {
			b.Lo[a], b.Hi[a] = b.Lo[a]-1, b.Lo[a]
		} else {
			b.Lo[a], b.Hi[a] = b.Hi[a], b.Hi[a]+1
		}
		w.layout.Unpack(w.work, w.channels[i].agreed.data, b)
	}
}

// freeze keeps the newest complete iterate as the block of a snapshot, without copying.
func (w *schwarz) freeze() {
	w.thaw()
	w.frozen, w.frozenAt = w.cur, w.iterate
}

func (w *schwarz) thaw() {
	if w.frozen != nil && !sameArray(w.frozen, w.cur) && !sameArray(w.frozen, w.next) {
		w.spare = w.frozen
	}
	w.frozen = nil
}

// magnitudes are those of what was assembled to be measured.
func (w *schwarz) magnitudes() kernel.Sum { return w.block.magnitudes(w.work, w.inside) }

func (w *schwarz) packFrozen(i int, dst []byte) {
	w.ownPart.Pack(dst, w.frozen, w.edges[i].own)
}

// room is an array of the own box that the next iterate may go to.
func (w *schwarz) room() []float64 {
	switch {
	case !sameArray(w.next, w.frozen):
		return w.next
	case w.spare != nil:
		out := w.spare
		w.spare = nil
		return out
	}
	return make([]float64, w.ownPart.Len())
}

// hear takes the messages of this method.
func (w *schwarz) hear(c *channel, m *message) error {
	switch m.kind {
	case msgLayers:
		return w.layersFrom(c.rank, m)
	case msgShares, msgCorrection:
		if w.coarse == nil {
			return fmt.Errorf("kind %d, while there is no coarse correction here: do all peers use the same method?", m.kind)
		}
		return w.coarse.agree(w, c.rank, m)
	}
	return fmt.Errorf("kind %d, which this method does not use", m.kind)
}

// Solution writes the agreed block after OpDone, and the newest complete iterate before;
// of a nonstationary problem the end of the last complete step. See Peer.
func (w *schwarz) Solution(dst []float64) {
	if w.steps.of > 0 {
		copy(dst, w.steps.before)
	} else {
		w.dense(dst)
	}
	(-w.config.units.scale).apply(dst)
}

// answer is the block that was judged, and its iterate, or the newest one. In lockstep the
// verdict on iterate k comes while k+1 is made; it is k that met the tolerance.
func (w *schwarz) answer() ([]float64, Iteration) {
	switch e := w.end.(type) {
	case *lockstepEnd:
		if e.reason == Converged && w.iterate == e.check+1 {
			return w.next, e.check
		}
	default:
		if w.frozen != nil && w.end.over() {
			return w.frozen, w.frozenAt
		}
	}
	return w.cur, w.iterate
}

// Outcome tells how the run ended, or how far it has come.
func (w *schwarz) Outcome() Outcome {
	o := w.party.Outcome()
	_, o.Iterate = w.answer()
	o.Work = w.spent
	return o
}

// dense writes the agreed or the newest block to a dense array.
func (w *schwarz) dense(dst []float64) {
	src, _ := w.answer()
	l := w.ownPart
	for z := range l.N[2] {
		for y := range l.N[1] {
			from, to := l.Index(0, y, z), l.Dense(0, y, z)
			copy(dst[to:to+l.N[0]], src[from:from+l.N[0]])
		}
	}
}

// Box is the peer's own box.
func (w *schwarz) Box() Box { return w.own }

// Links are the peers that this one exchanges anything with.
func (w *schwarz) Links() []Link { return schwarzLinks(&w.config, w.config.Rank) }
