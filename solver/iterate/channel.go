package iterate

import (
	"fmt"
	"time"
)

// Channel is one neighbour as the rules of exchange and of termination see it: the halo
// session, whose slots hold the newest values that arrived, and the agreement session.
type Channel struct {
	Rank       Rank
	Bytes      int    // length of a halo; 0: the two peers exchange no halo
	Scheme     Scheme // in force between the two peers
	LabelShift uint   // a label is iterate<<shift; below it counts parts of the next iterate

	slots       []Slot
	Agreed      Slot // the newest values that arrived on the agreement session
	lastSent    time.Duration
	Sent        bool // a halo was sent, so there is one to repeat
	RepeatOlder bool // lockstep over a lossy session: the older halo comes next

	Step          int      // time step in progress
	Opened        bool     // the first halos of the step were exchanged before it began
	earlyMessages [][]byte // agreement messages of the next step

	BoundaryMoves int       // moves of the boundary between the two peers, in this step
	MovedAt       Iteration // the iterate at which it moved last
}

// NewChannel returns the channel to peer q, whose halos have that many bytes.
func NewChannel(q Rank, bytes int, s Scheme) *Channel {
	return &Channel{Rank: q, Bytes: bytes, Scheme: s, slots: make([]Slot, s.Slots())}
}

// slot holds a halo of the neighbour; data aliases the caller's buffer.
type Slot struct {
	present bool
	step    int
	moves   int // of the boundary
	Label   Iteration
	Data    []byte
}

// older reports whether s is of an earlier time than c.
func (s *Slot) older(c *Slot) bool {
	return PackLabel(s.step, s.moves, s.Label) < PackLabel(c.step, c.moves, c.Label)
}

// A halo's label holds the iterate of a time step, above it how often the boundary between
// the two peers had moved in that step, and on top the step, 0 in a stationary run. So
// a halo that is put together from several is as old as the oldest of them.
const (
	iterateBits      = 36
	moveBits         = 7
	MaxBoundaryMoves = 1<<moveBits - 1
)

// PackLabel returns the label of a halo: the time step, how often the boundary between the two peers had moved
// in it, and the iterate.
func PackLabel(step, age int, sweep Iteration) uint64 {
	return uint64(step)<<(iterateBits+moveBits) | uint64(age)<<iterateBits | uint64(sweep)
}

// UnpackLabel is the inverse of PackLabel.
func UnpackLabel(label uint64) (step, age int, sweep Iteration) {
	return int(label >> (iterateBits + moveBits)), int(label>>iterateBits) & MaxBoundaryMoves, Iteration(label & (1<<iterateBits - 1))
}

// LabelIterate returns the iterate, within its time step, that the label of a halo (Op.Label) names.
func LabelIterate(label uint64) Iteration {
	_, _, sweep := UnpackLabel(label)
	return sweep
}

// Begin forgets the halos of the step before; what has arrived of the new one stays.
func (c *Channel) Begin(step int) {
	c.Step = step
	c.Opened, c.Sent = false, false
	c.RepeatOlder, c.Agreed.present = false, false
	c.BoundaryMoves, c.MovedAt = 0, 0
}

// Pick returns the newest values that relaxation k may read, nil if none has arrived.
func (c *Channel) Pick(k Iteration) *Slot {
	var best *Slot
	for i := range c.slots {
		best = c.newer(best, &c.slots[i], k)
	}
	return c.newer(best, &c.Agreed, k)
}

func (c *Channel) newer(best, s *Slot, k Iteration) *Slot {
	if !s.present || s.step != c.Step || s.moves != c.BoundaryMoves || !c.Scheme.Admit(k, s.Label>>c.LabelShift, c.Rank) ||
		best != nil && best.Label >= s.Label {
		return best
	}
	return s
}

// Arrived records what a slot of the caller's now holds. In lockstep an older iterate than the
// slot held is refused. Iterate parity+label of the run goes under that tag; the halos that open
// the next step arrive before that is known here.
func (c *Channel) Store(tag uint32, s Slot, parity Iteration) error {
	if int64(tag) >= int64(len(c.slots)) {
		return fmt.Errorf("solver: a face of rank %d came under tag %d; there are %d slots", c.Rank, tag, len(c.slots))
	}
	if len(s.Data) != c.Bytes {
		return fmt.Errorf("solver: a face of rank %d has %d bytes; it must have %d: do both peers use the same partition?",
			c.Rank, len(s.Data), c.Bytes)
	}
	if s.step == c.Step && c.tag(parity, s.Label) != tag {
		return fmt.Errorf("solver: rank %d sent iterate %d under tag %d of %d", c.Rank, s.Label, tag, len(c.slots))
	}
	if old := &c.slots[tag]; c.Scheme.Lockstep() && old.present && s.older(old) {
		return fmt.Errorf("solver: rank %d sent iterate %d after %d", c.Rank, s.Label, old.Label)
	}
	s.present = true
	c.slots[tag] = s
	return nil
}

// tag is that of the slot in which values of a label travel.
func (c *Channel) tag(parity, label Iteration) uint32 {
	return uint32(uint64(parity+label>>c.LabelShift) % uint64(len(c.slots)))
}

// TakeOpening takes iterate 0 of the step from the slot that it arrived in. It reports whether
// it has arrived.
func (c *Channel) TakeOpening() bool {
	for i := range c.slots {
		s := &c.slots[i]
		if s.present && s.step == c.Step && s.Label == 0 {
			if c.Agreed.Data == nil {
				c.Agreed.Data = make([]byte, c.Bytes)
			}
			copy(c.Agreed.Data, s.Data)
			c.LabelAgreed(c.Step, 0, true)
			c.Opened = true
		}
	}
	return c.Opened
}

// Agree labels the values in agreed.
func (c *Channel) LabelAgreed(step int, label Iteration, have bool) {
	c.Agreed.present = have
	c.Agreed.step, c.Agreed.moves = step, c.BoundaryMoves
	c.Agreed.Label = label
}

// Arrival finds whom a halo is from and what its label says; a nil channel without an error is
// a halo of an old time step. sweeping: the sweep after the newest complete iterate is in progress.
func (p *Coordination) HaloFrom(q Rank, label uint64, data []byte, sweeping bool) (*Channel, Slot, error) {
	c := findChannel(p.Halos, q)
	if c == nil {
		return nil, Slot{}, fmt.Errorf("solver: a face from rank %d, which is no neighbour of rank %d", q, p.Config.Rank)
	}
	step, age, sweep := UnpackLabel(label)
	if step < p.Steps.Current {
		p.Steps.staleHalos++
		return nil, Slot{}, nil
	}
	if step > min(p.Steps.Current+1, p.Steps.Total) || c.Scheme.Lockstep() && sweep > p.newestPossible(step, sweeping) {
		return nil, Slot{}, fmt.Errorf("solver: a face from rank %d: iterate %d of step %d, which it cannot have made: this peer is at %d of step %d",
			q, sweep, step, p.Iterate, p.Steps.Current)
	}
	if age > 0 && !p.Config.Moves || step == p.Steps.Current && age > c.BoundaryMoves+1 {
		return nil, Slot{}, fmt.Errorf("solver: a face from rank %d beyond %d moves of the cut; there have been %d", q, age, c.BoundaryMoves)
	}
	return c, Slot{step: step, moves: age, Label: sweep, Data: data}, nil
}

// reach is the newest iterate of a time step that a neighbour in lockstep can have
// made: to make iterate k+1 it needs iterate k of this peer, which leaves before the
// sweep that makes it has ended.
func (p *Coordination) newestPossible(step int, sweeping bool) Iteration {
	switch {
	case step > p.Steps.Current:
		return 0
	case sweeping:
		return p.Iterate + 2
	}
	return p.Iterate + 1
}

// SendOp is the operation that sends the values of a label to a neighbour.
func (p *Coordination) SendOp(now time.Duration, c *Channel, label Iteration) Op {
	c.lastSent, c.Sent = now, true
	return Op{
		Kind: OpSend, To: c.Rank, Bytes: c.Bytes, Label: PackLabel(p.Steps.Current, c.BoundaryMoves, label),
		Tag: c.tag(p.Steps.Parity, label),
	}
}

// Readable reports whether relaxation iterate may read values of every neighbour.
func (p *Coordination) Readable() bool {
	for _, c := range p.Halos {
		if c.Pick(p.Iterate) == nil {
			return false
		}
	}
	return true
}

// Wait repeats the newest halos when they are due (asynchronous sessions lose messages),
// and otherwise waits, at most until that is so.
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
			// In lockstep the neighbour may still need the iterate before, unless the boundary
			// has moved since: then it was there.
			c.RepeatOlder = p.Iterate > c.MovedAt && c.Scheme.Lockstep()
			return p.SendOp(now, c, p.Iterate<<c.LabelShift)
		}
		if until == 0 || due < until {
			until = due
		}
	}
	return Op{Kind: OpWait, Until: until}
}

// Expects returns the tag of the next halo on a channel, and reports whether its slot may be written
// before the halo is received. taken reports that relaxation Iterate has read its halos. In
// lockstep iterates k and k+2 share a slot, and no other relaxation than k reads iterate k.
func (p *Coordination) Expects(c *Channel, taken bool) (tag uint32, ok bool) {
	if c.Scheme.Asynchronous() || len(c.slots) != 2 || c.Step != p.Steps.Current {
		return 0, false
	}
	newest, next := &c.slots[0], &c.slots[1]
	if next.present && newest.older(next) || !newest.present {
		newest, next = next, newest
	} else {
		tag = 1
	}
	if !newest.present || newest.step != p.Steps.Current {
		return 0, false
	}
	return tag, !next.present || next.Label < p.Iterate || next.Label == p.Iterate && taken
}
