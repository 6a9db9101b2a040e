package solver

import (
	"fmt"
	"time"
)

// channel is one neighbour as the rules of exchange and of termination see it: the halo
// session, whose slots hold the newest values that arrived, and the agreement session.
type channel struct {
	rank   Rank
	bytes  int    // length of a halo; 0: the two peers exchange no halo
	scheme Scheme // in force between the two peers
	shift  uint   // a label is iterate<<shift; below it counts parts of the next iterate

	slots       []slot
	agreed      slot // the newest values that arrived on the agreement session
	lastSent    time.Duration
	sent        bool // a halo was sent, so there is one to repeat
	repeatOlder bool // lockstep over a lossy session: the older halo comes next

	step   int      // time step in progress
	opened bool     // the first halos of the step were exchanged before it began
	early  [][]byte // agreement messages of the next step

	age     int       // moves of the boundary between the two peers, in this step
	movedAt Iteration // the iterate at which it moved last
}

func newChannel(q Rank, bytes int, s Scheme) *channel {
	return &channel{rank: q, bytes: bytes, scheme: s, slots: make([]slot, s.Slots())}
}

// slot holds a halo of the neighbour; data aliases the caller's buffer.
type slot struct {
	have  bool
	step  int
	age   int // of the boundary
	label Iteration
	data  []byte
}

// older reports whether s is of an earlier time than c.
func (s *slot) older(c *slot) bool {
	return packLabel(s.step, s.age, s.label) < packLabel(c.step, c.age, c.label)
}

// A halo's label holds the iterate of a time step, above it how often the boundary between
// the two peers had moved in that step, and on top the step, 0 in a stationary run. So
// a halo that is put together from several is as old as the oldest of them.
const (
	sweepBits = 36
	ageBits   = 7
	mostAge   = 1<<ageBits - 1
)

func packLabel(step, age int, sweep Iteration) uint64 {
	return uint64(step)<<(sweepBits+ageBits) | uint64(age)<<sweepBits | uint64(sweep)
}

func unpackLabel(label uint64) (step, age int, sweep Iteration) {
	return int(label >> (sweepBits + ageBits)), int(label>>sweepBits) & mostAge, Iteration(label & (1<<sweepBits - 1))
}

// LabelIterate returns the iterate, within its time step, that the label of a halo (Op.Label) names.
func LabelIterate(label uint64) Iteration {
	_, _, sweep := unpackLabel(label)
	return sweep
}

// begin forgets the halos of the step before; what has arrived of the new one stays.
func (c *channel) begin(step int) {
	c.step = step
	c.opened, c.sent = false, false
	c.repeatOlder, c.agreed.have = false, false
	c.age, c.movedAt = 0, 0
}

// pick returns the newest values that relaxation k may read, nil if none has arrived.
func (c *channel) pick(k Iteration) *slot {
	var best *slot
	for i := range c.slots {
		best = c.newer(best, &c.slots[i], k)
	}
	return c.newer(best, &c.agreed, k)
}

func (c *channel) newer(best, s *slot, k Iteration) *slot {
	if !s.have || s.step != c.step || s.age != c.age || !c.scheme.Admit(k, s.label>>c.shift, c.rank) ||
		best != nil && best.label >= s.label {
		return best
	}
	return s
}

// arrived records what a slot of the caller's now holds. In lockstep an older iterate than the
// slot held is refused. Iterate parity+label of the run goes under that tag; the halos that open
// the next step arrive before that is known here.
func (c *channel) arrived(tag uint32, s slot, parity Iteration) error {
	if int64(tag) >= int64(len(c.slots)) {
		return fmt.Errorf("solver: a face of rank %d came under tag %d; there are %d slots", c.rank, tag, len(c.slots))
	}
	if len(s.data) != c.bytes {
		return fmt.Errorf("solver: a face of rank %d has %d bytes; it must have %d: do both peers use the same partition?",
			c.rank, len(s.data), c.bytes)
	}
	if s.step == c.step && c.tag(parity, s.label) != tag {
		return fmt.Errorf("solver: rank %d sent iterate %d under tag %d of %d", c.rank, s.label, tag, len(c.slots))
	}
	if old := &c.slots[tag]; inLockstep(c.scheme) && old.have && s.older(old) {
		return fmt.Errorf("solver: rank %d sent iterate %d after %d", c.rank, s.label, old.label)
	}
	s.have = true
	c.slots[tag] = s
	return nil
}

// tag is that of the slot in which values of a label travel.
func (c *channel) tag(parity, label Iteration) uint32 {
	return uint32(uint64(parity+label>>c.shift) % uint64(len(c.slots)))
}

// takeOpening takes iterate 0 of the step from the slot that it arrived in. It reports whether
// it has arrived.
func (c *channel) takeOpening() bool {
	for i := range c.slots {
		s := &c.slots[i]
		if s.have && s.step == c.step && s.label == 0 {
			if c.agreed.data == nil {
				c.agreed.data = make([]byte, c.bytes)
			}
			copy(c.agreed.data, s.data)
			c.agree(c.step, 0, true)
			c.opened = true
		}
	}
	return c.opened
}

// agree labels the values in agreed.
func (c *channel) agree(step int, label Iteration, have bool) {
	c.agreed.have = have
	c.agreed.step, c.agreed.age = step, c.age
	c.agreed.label = label
}

// arrival finds whom a halo is from and what its label says; a nil channel without an error is
// a halo of an old time step. sweeping: the sweep after the newest complete iterate is in progress.
func (p *party) arrival(q Rank, label uint64, data []byte, sweeping bool) (*channel, slot, error) {
	c := find(p.halos, q)
	if c == nil {
		return nil, slot{}, fmt.Errorf("solver: a face from rank %d, which is no neighbour of rank %d", q, p.run.Rank)
	}
	step, age, sweep := unpackLabel(label)
	if step < p.steps.at {
		p.steps.stale++
		return nil, slot{}, nil
	}
	if step > min(p.steps.at+1, p.steps.of) || inLockstep(c.scheme) && sweep > p.reach(step, sweeping) {
		return nil, slot{}, fmt.Errorf("solver: a face from rank %d: iterate %d of step %d, which it cannot have made: this peer is at %d of step %d",
			q, sweep, step, p.iterate, p.steps.at)
	}
	if age > 0 && !p.run.Moves || step == p.steps.at && age > c.age+1 {
		return nil, slot{}, fmt.Errorf("solver: a face from rank %d beyond %d moves of the cut; there have been %d", q, age, c.age)
	}
	return c, slot{step: step, age: age, label: sweep, data: data}, nil
}

// reach is the newest iterate of a time step that a neighbour in lockstep can have
// made: to make iterate k+1 it needs iterate k of this peer, which leaves before the
// sweep that makes it has ended.
func (p *party) reach(step int, sweeping bool) Iteration {
	switch {
	case step > p.steps.at:
		return 0
	case sweeping:
		return p.iterate + 2
	}
	return p.iterate + 1
}

// send is the operation that sends the values of a label to a neighbour.
func (p *party) send(now time.Duration, c *channel, label Iteration) Op {
	c.lastSent, c.sent = now, true
	return Op{
		Kind: OpSend, To: c.rank, Bytes: c.bytes, Label: packLabel(p.steps.at, c.age, label),
		Tag: c.tag(p.steps.parity, label),
	}
}

// readable reports whether relaxation iterate may read values of every neighbour.
func (p *party) readable() bool {
	for _, c := range p.halos {
		if c.pick(p.iterate) == nil {
			return false
		}
	}
	return true
}

// wait repeats the newest halos when they are due (asynchronous sessions lose messages),
// and otherwise waits, at most until that is so.
func (p *party) wait(now time.Duration) Op {
	until := time.Duration(0)
	for _, c := range p.halos {
		if !c.scheme.Asynchronous() {
			continue
		}
		if c.repeatOlder {
			c.repeatOlder = false
			return p.send(now, c, (p.iterate-1)<<c.shift)
		}
		if !c.sent {
			continue
		}
		due := c.lastSent + p.run.Repeat
		if now >= due {
			// In lockstep the neighbour may still need the iterate before, unless the boundary
			// has moved since: then it was there.
			c.repeatOlder = p.iterate > c.movedAt && inLockstep(c.scheme)
			return p.send(now, c, p.iterate<<c.shift)
		}
		if until == 0 || due < until {
			until = due
		}
	}
	return Op{Kind: OpWait, Until: until}
}
