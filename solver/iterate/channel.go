package iterate

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Channel is the state of the exchange with one peer: the halo session, whose slots hold the
// newest values received, and the agreement session.
type Channel struct {
	Rank   Rank
	Bytes  int    // length of a halo; 0 if the two peers exchange none
	Scheme Scheme // between the two peers
	// LabelShift is the number of low bits of a label that number the parts of the next iterate: the
	// label of part p after iterate k is k<<LabelShift + p.
	LabelShift uint

	slots       []Slot
	received    uint64        // halos
	Agreed      Slot          // newest values received on the agreement session
	screen      kernel.Screen // of what the peer sends
	lastSent    time.Duration
	Sent        bool // a halo was sent and can be repeated
	RepeatOlder bool // in lockstep over a lossy session: repeat the older halo next

	Step          int      // time step in progress
	Opened        bool     // the first halos of the step were exchanged before it began
	earlyMessages [][]byte // agreement messages of the next time step

	BoundaryMoves int       // moves of the boundary between the two peers, in this time step
	MovedAt       Iteration // iterate at which the boundary moved last
}

// NewChannel returns the channel to peer q with halos of the given length.
func NewChannel(q Rank, bytes int, s Scheme) *Channel {
	return &Channel{Rank: q, Bytes: bytes, Scheme: s, slots: make([]Slot, s.Slots())}
}

// Slot holds a halo received from a neighbour. Data are its pieces, in the caller's memory; see Peer.Halo.
type Slot struct {
	present bool
	step    int
	moves   int // of the boundary
	Label   Iteration
	Data    [][]byte
}

// Contiguous returns the bytes of all pieces: the only piece itself, or a copy in *memory, which grows as needed.
func Contiguous(pieces [][]byte, memory *[]byte) []byte {
	if len(pieces) == 1 {
		return pieces[0]
	}
	*memory = (*memory)[:0]
	for _, p := range pieces {
		*memory = append(*memory, p...)
	}
	return *memory
}

// AgreedValues returns the memory of the values in Agreed, which is one piece.
func (c *Channel) AgreedValues() []byte {
	if c.Agreed.Data == nil {
		c.Agreed.Data = [][]byte{make([]byte, c.Bytes)}
	}
	return c.Agreed.Data[0]
}

// older reports whether s was made before c.
func (s *Slot) older(c *Slot) bool {
	return PackLabel(s.step, s.moves, s.Label) < PackLabel(c.step, c.moves, c.Label)
}

// The label of a halo holds, from the low bits up: the iterate, the number of moves of the boundary
// between the two peers, and the time step (0 in a stationary run). So labels order halos by age,
// and a halo assembled from segments of several has the smallest of their labels.
const (
	iterateBits      = 36
	moveBits         = 7
	MaxBoundaryMoves = 1<<moveBits - 1
)

// PackLabel returns the label of a halo of a time step after the given number of boundary moves.
func PackLabel(step, moves int, iterate Iteration) uint64 {
	return uint64(step)<<(iterateBits+moveBits) | uint64(moves)<<iterateBits | uint64(iterate)
}

// UnpackLabel is the inverse of PackLabel.
func UnpackLabel(label uint64) (step, moves int, iterate Iteration) {
	moves = int(label>>iterateBits) & MaxBoundaryMoves
	return int(label >> (iterateBits + moveBits)), moves, Iteration(label & (1<<iterateBits - 1))
}

// LabelIterate returns the iterate within its time step of the label of a halo (Op.Label).
func LabelIterate(label uint64) Iteration {
	_, _, iterate := UnpackLabel(label)
	return iterate
}

// Begin begins a time step: it discards the halos of the previous step and keeps those of the new one.
func (c *Channel) Begin(step int) {
	c.Step = step
	c.Opened, c.Sent = false, false
	c.RepeatOlder, c.Agreed.present = false, false
	c.BoundaryMoves, c.MovedAt = 0, 0
}

// Pick returns the newest halo that relaxation k may read, nil if there is none.
func (c *Channel) Pick(k Iteration) *Slot {
	var best *Slot
	for i := range c.slots {
		best = c.newer(best, &c.slots[i], k)
	}
	return c.newer(best, &c.Agreed, k)
}

func (c *Channel) newer(best, s *Slot, k Iteration) *Slot {
	if !s.present || s.step != c.Step || s.moves != c.BoundaryMoves ||
		!c.Scheme.Admit(k, s.Label>>c.LabelShift, c.Rank) ||
		best != nil && best.Label >= s.Label {
		return best
	}
	return s
}

// Store records a halo received under a tag. parity is TimeSteps.Parity: iterate parity+label of
// the run has a fixed tag. The tag of a halo of the next time step is not checked, because parity
// is not known yet. In lockstep an older halo than the stored one is an error.
func (c *Channel) Store(tag uint32, s Slot, parity Iteration) error {
	if int64(tag) >= int64(len(c.slots)) {
		return fmt.Errorf(
			"iterate: a halo of rank %d has tag %d; the session has %d slots: do both peers use the same scheme?",
			c.Rank, tag, len(c.slots))
	}
	length := 0
	for i, p := range s.Data {
		if length += len(p); len(p)%8 != 0 && i < len(s.Data)-1 {
			return fmt.Errorf("iterate: piece %d of a halo of rank %d has %d bytes, which are no whole values",
				i, c.Rank, len(p))
		}
	}
	if length != c.Bytes {
		return fmt.Errorf(
			"iterate: a halo of rank %d has %d bytes; %d are expected: do both peers use the same partition?", c.Rank,
			length, c.Bytes)
	}
	if s.step == c.Step && c.tag(parity, s.Label) != tag {
		return fmt.Errorf("iterate: rank %d sent iterate %d under tag %d; tag %d is expected",
			c.Rank, s.Label, tag, c.tag(parity, s.Label))
	}
	if old := &c.slots[tag]; c.Scheme.Lockstep() && old.present && s.older(old) {
		return fmt.Errorf("iterate: rank %d sent iterate %d after iterate %d; halos in lockstep must arrive in order",
			c.Rank, s.Label, old.Label)
	}
	s.present = true
	c.slots[tag] = s
	return nil
}

// tag returns the tag under which the halo with a label is sent.
func (c *Channel) tag(parity, label Iteration) uint32 {
	return uint32(uint64(parity+label>>c.LabelShift) % uint64(len(c.slots)))
}

// TakeOpening copies iterate 0 of the time step from its slot to Agreed. It reports whether the halo has arrived.
func (c *Channel) TakeOpening() bool {
	for i := range c.slots {
		s := &c.slots[i]
		if s.present && s.step == c.Step && s.Label == 0 {
			agreed := c.AgreedValues()
			for _, p := range s.Data {
				agreed = agreed[copy(agreed, p):]
			}
			c.LabelAgreed(c.Step, 0, true)
			c.Opened = true
		}
	}
	return c.Opened
}

// LabelAgreed sets the label of the values in Agreed and whether relaxations may read them.
func (c *Channel) LabelAgreed(step int, label Iteration, present bool) {
	c.Agreed = Slot{present: present, step: step, moves: c.BoundaryMoves, Label: label, Data: c.Agreed.Data}
}

// HaloFrom returns the channel and the decoded label of a halo from rank q. The channel is nil without
// an error if the halo belongs to a past time step and has to be dropped. sweeping reports whether the
// sweep that makes iterate Iterate+1 is in progress.
func (p *Coordination) HaloFrom(q Rank, label uint64, data [][]byte, sweeping bool) (*Channel, Slot, error) {
	c := findChannel(p.Halos, q)
	if c == nil {
		return nil, Slot{}, fmt.Errorf("iterate: a halo from rank %d, which is not a neighbour of rank %d",
			q, p.Config.Rank)
	}
	step, moves, iterate := UnpackLabel(label)
	if step < p.Steps.Current {
		p.Steps.staleHalos++
		return nil, Slot{}, nil
	}
	// In lockstep a neighbour needs iterate k of this peer to make iterate k+1, and this peer sends iterate k
	// before the sweep that makes it has ended.
	newest := p.Iterate + 1
	switch {
	case step > p.Steps.Current:
		newest = 0
	case sweeping:
		newest++
	}
	if step > min(p.Steps.Current+1, p.Steps.Total) || c.Scheme.Lockstep() && iterate > newest {
		return nil, Slot{}, fmt.Errorf("iterate: rank %d sent iterate %d of time step %d, which it cannot have made: "+
			"this peer is at iterate %d of time step %d", q, iterate, step, p.Iterate, p.Steps.Current)
	}
	if moves > 0 && !p.Config.Moves || step == p.Steps.Current && moves > c.BoundaryMoves+1 {
		return nil, Slot{}, fmt.Errorf(
			"iterate: a halo from rank %d after %d moves of the boundary; this peer knows of %d", q, moves,
			c.BoundaryMoves)
	}
	if err := p.screenOf(c).Check(data...); err != nil {
		return nil, Slot{}, err
	}
	c.received++
	return c, Slot{step: step, moves: moves, Label: iterate, Data: data}, nil
}

// SendOp returns the operation that sends the halo with a label to a neighbour.
func (p *Coordination) SendOp(now time.Duration, c *Channel, label Iteration) Op {
	c.lastSent, c.Sent = now, true
	return Op{
		Kind: OpSend, To: c.Rank, Bytes: c.Bytes, Label: PackLabel(p.Steps.Current, c.BoundaryMoves, label),
		Tag: c.tag(p.Steps.Parity, label),
	}
}

// Readable reports whether relaxation Iterate can begin: every neighbour has sent a halo that it may read.
func (p *Coordination) Readable() bool {
	for _, c := range p.Halos {
		if c.Pick(p.Iterate) == nil {
			return false
		}
	}
	return true
}

// Wait returns the operation of a peer that can do nothing before an arrival. If a halo on an asynchronous session,
// which may lose messages, is due to be repeated, Wait repeats it; otherwise it waits until then.
func (p *Coordination) Wait(now time.Duration) Op {
	until := time.Duration(0)
	for _, c := range p.Halos {
		if !c.Scheme.Asynchronous() {
			continue
		}
		if c.RepeatOlder {
			c.RepeatOlder = false
			return p.SendOp(now, c, (p.Iterate-1)<<c.LabelShift)
		}
		if !c.Sent {
			continue
		}
		due := c.lastSent + p.Config.Repeat
		if now >= due {
			// In lockstep the neighbour may still need the previous iterate. If the boundary has
			// moved since, the neighbour has received that iterate.
			c.RepeatOlder = p.Iterate > c.MovedAt && c.Scheme.Lockstep()
			return p.SendOp(now, c, p.Iterate<<c.LabelShift)
		}
		if until == 0 || due < until {
			until = due
		}
	}
	return Op{Kind: OpWait, Until: until}
}
