package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// copies are the kept iterates of a peer and of the one whose buddy it is (--recover exact).
type copies struct {
	mu    sync.Mutex
	store buddy.Store
	since int // epoch: copies of earlier ones are not stored any more
}

// freeze records the values that the peer's block has at the end of an epoch, at iterate k.
func (c *copies) freeze(k iterate.Iteration, u []float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.Freeze(k, u)
}

// begin records that the peer keeps an iterate, unless its epoch has ended.
func (c *copies) begin(epoch int, k iterate.Iteration, state []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch < c.since {
		return false
	}
	c.store.Begin(k, state)
	return true
}

// endEpoch refuses copies of an epoch from now on: holding must not change after the launcher knows it.
func (c *copies) endEpoch(epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = epoch + 1
}

func (c *copies) holding() *buddy.Holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.store.Holding()
	return &h
}

// add stores a copy of another peer's block, unless its epoch has ended.
func (c *copies) add(epoch int, of iterate.Rank, k *buddy.Copy) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch < c.since {
		return false
	}
	c.store.Add(of, k)
	return true
}

// resume sets the configuration of a peer that goes on from a kept iterate, or that begins again.
func (p *peer) resume(w *work) error {
	r, c := w.assign.Resume, &p.copies
	if r == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Again {
		c.store.Discard()
		p.values.set(nil, p.box())
		return nil
	}
	from := c.store.Own(iterate.Iteration(r.Iterate))
	if r.State != nil {
		from = &buddy.Copy{Iterate: iterate.Iteration(r.Iterate), State: r.State, Values: w.config.Initial}
	}
	if from == nil || len(from.Values) != p.box().Points() {
		return fmt.Errorf("this peer has no copy of iterate %d, from which the run goes on", r.Iterate)
	}
	c.store.Resume(from)
	w.config.Initial, w.config.State = from.Values, from.State
	p.values.set(from.Values, p.box())
	return nil
}

// sendCopy sends the copy of another peer's block, or of its own, to the launcher, which has asked for it on the
// connection.
func (p *peer) sendCopy(conn *rendezvous.Conn, m rendezvous.Capture) {
	c := &p.copies
	c.mu.Lock()
	k := c.store.Other(iterate.Rank(m.Copy.Rank), iterate.Iteration(m.Copy.Iterate))
	if m.Copy.Rank == p.welcome.Rank {
		k = c.store.Own(iterate.Iteration(m.Copy.Iterate))
	}
	c.mu.Unlock()
	out := rendezvous.Captured{Number: m.Number, Residual: nullable.NaN(), Copy: m.Copy}
	p.capturing.Lock()
	defer p.capturing.Unlock()
	if k != nil {
		out.State, out.Sweep = k.State, uint64(k.Iterate)
		box := p.cut.Box(iterate.Rank(m.Copy.Rank))
		if sendBlock(conn, rendezvous.StreamCapture, false, box, k.Values) != nil {
			return // receive sees the end of the connection, too
		}
	}
	_ = conn.Send(out)
}

// courier carries copies between a peer, its buddy, and the peer whose buddy it is. A copy is its iterate (8 bytes),
// the length of its state (4), the state, and the values, all little endian; the answer is the iterate.
type courier struct {
	p     *peer
	epoch int
	box   problem.Box
	to    *driver.Conn
	from  *driver.Conn

	largest float64 // bound of the values of copies; 0: none
}

// courier connects this peer with its buddy, and with the peer whose buddy it is. It returns nil if no iterates are
// kept.
func (e *epoch) courier() (*courier, error) {
	to, of, is := e.buddies()
	if !is {
		return nil, nil
	}
	own := e.p.welcome.Rank
	c := &courier{p: e.p, epoch: e.endpoint.epoch, box: e.p.box()}
	c.largest = problem.LargestValue(e.p.problem, e.p.welcome.Spec.Method)
	open := func(other, from, to int, conn **driver.Conn, failed *error) {
		*conn, *failed = e.node.OpenConn(e.ctx, nodeName(other, c.epoch), fmt.Sprintf("copy/%d-%d", from, to))
	}
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { open(int(to), own, int(to), &c.to, &errs[0]) })
	both.Go(func() { open(int(of), int(of), own, &c.from, &errs[1]) })
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, &connectError{fmt.Errorf("cannot exchange copies of the blocks: %w", err)}
	}
	e.p.copies.mu.Lock()
	e.p.copies.store.Reserve(c.box.Points(), e.p.cut.Box(of).Points())
	e.p.copies.mu.Unlock()
	go c.receive(of)
	return c, nil
}

// buddies returns the buddy of this peer, and the peer whose buddy it is. It returns false if no iterates are kept.
func (e *epoch) buddies() (to, of iterate.Rank, is bool) {
	if e.p.welcome.Spec.KeepEvery == 0 || len(e.assign.Members) == 1 {
		return 0, 0, false
	}
	all, own := buddy.Of(rendezvous.Apart(e.assign.Members)), iterate.Rank(e.p.welcome.Rank)
	for r, b := range all {
		if b == own {
			of = iterate.Rank(r)
		}
	}
	return all[own], of, true
}

// maxState bounds the length of a state, in bytes.
const maxState = 4096

// pieceValues is the number of values that are converted and sent at once, or those of one plane if it has more.
const pieceValues = 1 << 13

// keep stores a copy with the buddy; see runner.Config.Keep.
func (c *courier) keep(k iterate.Iteration, state []byte, values func(dst []float64, part problem.Box) bool) error {
	begin := time.Now()
	defer func() {
		c.p.log.Debug().Uint64("iterate", uint64(k)).Float64("seconds", time.Since(begin).Seconds()).Msg("copy stored")
	}()
	if !c.p.copies.begin(c.epoch, k, state) {
		return member.ErrNextEpoch
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(k))
	head = append(binary.LittleEndian.AppendUint32(head, uint32(len(state))), state...)
	if _, err := c.to.Write(head); err != nil {
		return err
	}
	size, axis := c.box.Size(), 2
	for axis > 0 && size[axis] == 1 {
		axis--
	}
	n := min(size[axis], (c.box.Points()+pieceValues-1)/pieceValues)
	var u []float64
	var out []byte
	for i := range n {
		part := problem.Chunk(c.box, axis, i, n)
		u = slices.Grow(u[:0], part.Points())[:part.Points()]
		if !values(u, part) {
			return errors.New("the epoch has ended")
		}
		out = slices.Grow(out[:0], 8*len(u))[:8*len(u)]
		blocks.Encode(out, u)
		if _, err := c.to.Write(out); err != nil {
			return err
		}
	}
	var answer [8]byte
	if _, err := io.ReadFull(c.to, answer[:]); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint64(answer[:]); got != uint64(k) {
		return fmt.Errorf("the buddy has stored iterate %d instead of %d", got, k)
	}
	return nil
}

// receive stores the copies of another peer until the end of the connection.
func (c *courier) receive(of iterate.Rank) {
	for {
		k, err := readCopy(c.from, c.largest, c.array(of))
		if errors.Is(err, kernel.ErrImpossible) {
			c.p.goOnWithout(c.epoch, of, fmt.Errorf("%w: %w", exchange.ErrRefused, err))
		}
		if err != nil || !c.p.copies.add(c.epoch, of, k) {
			c.p.log.Debug().Err(err).Int("of", int(of)).Msg("no more copies are stored")
			return
		}
		if _, err := c.from.Write(binary.LittleEndian.AppendUint64(nil, uint64(k.Iterate))); err != nil {
			return
		}
	}
}

// goOnWithout tells the leader that this peer goes on without another one, which is lost.
func (p *peer) goOnWithout(epoch int, q iterate.Rank, why error) {
	_ = p.leader.Send(rendezvous.Unreachable{
		Epoch: epoch, Rank: int(q), Why: why.Error(), Refused: errors.Is(why, exchange.ErrRefused),
	})
}

// array returns a function that allocates the values of a peer's block.
func (c *courier) array(of iterate.Rank) func() []float64 {
	return func() []float64 {
		c.p.copies.mu.Lock()
		defer c.p.copies.mu.Unlock()
		return c.p.copies.store.Array(c.p.cut.Box(of).Points())
	}
}

// readCopy reads a copy of a block, whose values are at most largest; 0: there is no bound. values returns the memory for its values, once the copy has begun to arrive.
func readCopy(in io.Reader, largest float64, values func() []float64) (*buddy.Copy, error) {
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[8:])
	if n > maxState {
		return nil, fmt.Errorf("%w: a copy with a state of %d bytes; %d is the most", kernel.ErrImpossible, n, maxState)
	}
	k := &buddy.Copy{
		Iterate: iterate.Iteration(binary.LittleEndian.Uint64(head[:])), State: make([]byte, n),
	}
	if _, err := io.ReadFull(in, k.State); err != nil {
		return nil, err
	}
	k.Values = values()
	points := len(k.Values)
	piece := make([]byte, 8*min(points, pieceValues))
	screen := kernel.Screen{Most: largest}
	for at := 0; at < points; {
		part := piece[:min(len(piece), 8*(points-at))]
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
		if err := screen.Check(part); err != nil {
			return nil, err
		}
		blocks.Decode(k.Values[at:][:len(part)/8], part)
		at += len(part) / 8
	}
	return k, nil
}

// kept records that every peer has stored its copy; see runner.Config.Kept.
func (c *courier) kept(k iterate.Iteration, solution func(dst []float64)) {
	c.p.copies.mu.Lock()
	defer c.p.copies.mu.Unlock()
	c.p.copies.store.Complete(k, c.box.Points(), solution)
	c.p.log.Debug().Uint64("iterate", uint64(k)).Msg("kept")
}
