package iterate

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// KeepClock decides, at the root, when the next iterate is kept: every peer then stores a copy of its values and of
// its state with another peer, and relaxes again when all have (OpKeep, OpKept).
type KeepClock struct {
	Every time.Duration // least time between two kept iterates; 0: none is kept
	began time.Duration // the newest one
	takes time.Duration // to keep one: an average in which a newer one counts more; 0: none was kept
	next  time.Duration // time of the next one, after the first
}

// keepShare bounds the time for which the peers wait for copies: one part in so many of the run.
const keepShare = 50

// Due reports whether an iterate should be kept.
func (c *KeepClock) Due(now time.Duration) bool { return c.Every > 0 && now >= max(c.Every, c.next) }

// Begin records that the peers begin to keep an iterate.
func (c *KeepClock) Begin(now time.Duration) { c.began, c.next = now, math.MaxInt64 }

// End records that all peers have kept it.
func (c *KeepClock) End(now time.Duration) {
	if c.takes += now - c.began; c.takes > now-c.began {
		c.takes /= 2
	}
	c.next = now + max(c.Every, keepShare*c.takes)
}

// lockstepKeep keeps iterates of a run in lockstep. The root marks a verdict, so that all peers keep the iterate at
// which it takes effect. Reports that a subtree has stored its copies travel up the tree, and that all have, down.
type lockstepKeep struct {
	clock  KeepClock
	wanted bool
	at     Iteration // which is wanted
	begun  bool      // this peer has reached it
	kept   []bool    // by child: the subtree has stored its copies
	ended  bool      // clock.End is due when the queued operations have been carried out
}

// beginKeep keeps the present iterate.
func (e *lockstepRule) beginKeep() {
	k := &e.keep
	k.begun = true
	k.clock.Begin(e.p.Now)
	e.p.outbox = append(e.p.outbox, Op{Kind: OpKeep, Label: uint64(k.at), Message: EncodeState(e)})
	e.advanceKeep()
}

// advanceKeep reports to the parent when the copies of the subtree are stored. The queue of operations puts the report
// behind this peer's own copy.
func (e *lockstepRule) advanceKeep() {
	k := &e.keep
	if !k.begun || slices.Contains(k.kept, false) || e.p.SendParent(&Message{Kind: MsgKept, Number: uint64(k.at)}) {
		return
	}
	e.endKeep(&Message{Kind: MsgKeptAll, Number: uint64(k.at)})
}

func (e *lockstepRule) endKeep(m *Message) {
	k := &e.keep
	e.p.SendChildren(m)
	e.p.outbox = append(e.p.outbox, Op{Kind: OpKept, Label: uint64(k.at)})
	k.wanted, k.begun, k.ended = false, false, true
	clear(k.kept)
}

// receiveKeep handles the messages of kept iterates.
func (e *lockstepRule) receiveKeep(c *Channel, m *Message) error {
	k := &e.keep
	switch {
	case !k.wanted && m.Number <= uint64(k.at): // a duplicate
	case !k.wanted || m.Number != uint64(k.at):
		return fmt.Errorf("copies of iterate %d, which is not kept", m.Number)
	case m.Kind == MsgKept:
		k.kept[e.p.Tree.Child(c.Rank)] = true
		e.advanceKeep()
	case !k.begun:
		return fmt.Errorf("copies of iterate %d are complete without this peer's", m.Number)
	default:
		e.endKeep(m)
	}
	return nil
}

// Fields implements State: what the verdicts so far determine.
func (e *lockstepRule) Fields(visit func(field any)) {
	visit(&e.p.Iterate)
	visit(&e.check)
	visit(&e.measureFrom)
	visit(&e.norm0)
	visit(&e.residual)
	visit(&e.wantsMagnitudes)
	e.schedule.Fields(visit)
	e.stagnant.Fields(visit)
}

// restore continues from a kept iterate. It is kept again before the first sweep, since the peers may be others.
func (e *lockstepRule) restore(state []byte) error {
	if err := DecodeState(state, e); err != nil {
		return err
	}
	if k := e.p.Iterate; e.check < k || !(e.norm0 >= 0 && e.norm0 <= math.MaxFloat64) {
		return fmt.Errorf("iterate: the state of iterate %d, whose next check is at %d", k, e.check)
	}
	for _, c := range e.p.Halos {
		c.MovedAt = e.p.Iterate // there is no older iterate to repeat
	}
	e.keep.wanted, e.keep.at = e.keep.clock.Every > 0, e.p.Iterate
	return nil
}

// State is the part of a peer's state, without its values, that a run needs to go on from a kept iterate.
type State interface {
	// Fields calls visit with a pointer to each field of the state, always in the same order. Fields are of type bool,
	// int, float64 or Iteration.
	Fields(visit func(field any))
}

// EncodeState returns the fields of a state, little endian.
func EncodeState(s State) (out []byte) {
	s.Fields(func(field any) {
		if n, is := field.(*int); is {
			field = new(int64)
			*field.(*int64) = int64(*n)
		}
		out, _ = binary.Append(out, binary.LittleEndian, field) // all fields have a fixed size
	})
	return out
}

// DecodeState sets the fields of a state. It returns an error, and may have set some fields, unless data has exactly
// the length of the state.
func DecodeState(data []byte, s State) error {
	left := data
	ok := true
	s.Fields(func(field any) {
		to := field
		n, isInt := field.(*int)
		if isInt {
			to = new(int64)
		}
		size, err := binary.Decode(left, binary.LittleEndian, to)
		if ok = ok && err == nil; ok {
			left = left[size:]
			if isInt {
				*n = int(*to.(*int64))
			}
		}
	})
	if !ok || len(left) > 0 {
		return fmt.Errorf("iterate: a state of %d bytes; this method and version need another length", len(data))
	}
	return nil
}
