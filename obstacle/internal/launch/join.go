package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// await handles events before the start until all peers are ready. A failure ends the run. limit bounds the time; 0
// leaves only the peer timeout.
func (r *shell) await(what string, limit time.Duration, ready func(m *member) bool) error {
	missing := func() (n int) {
		for _, m := range r.members {
			if !ready(m) {
				n++
			}
		}
		return n
	}
	tick := time.NewTicker(r.tick)
	defer tick.Stop()
	left := r.ticks(limit)
	for missing() > 0 {
		select {
		case o := <-r.inputs:
			err := r.handleEarly(r.eventOf(o))
			if r.execute(); err != nil {
				return err
			}
		case <-tick.C:
			err := r.checkSilenceEarly()
			if r.execute(); err != nil {
				return err
			}
			if left--; limit > 0 && left <= 0 {
				return r.timedOut(what, missing(), limit)
			}
		case <-r.Interrupt:
			return ErrInterrupted
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// timedOut returns the error of an await that reached its limit.
func (r *run) timedOut(what string, missing int, limit time.Duration) error {
	err := fmt.Errorf("%d of %d peers did not %s within %v (--join-timeout)", missing, len(r.members), what, limit)
	if r.refusal != nil {
		return fmt.Errorf("%w; the last one that failed: %w", err, r.refusal)
	}
	return err
}

// checkSilenceEarly dismisses peers that timed out before the start.
func (r *shell) checkSilenceEarly() error {
	for _, m := range r.members {
		if m.conn != 0 && m.silentFor(false, r.ticks(r.PeerTimeout)) {
			if err := r.dismiss(m, fmt.Errorf("%s before the start", m.silence(r.PeerTimeout))); err != nil {
				return err
			}
		}
	}
	return nil
}

// dismiss removes a peer that cannot take part. While peers join, another one may replace a peer that was started by
// hand; otherwise the run ends with why.
func (r *run) dismiss(m *member, why error) error {
	if !r.joining || m.child != 0 {
		return why
	}
	r.refusal = why
	r.warn(why.Error()+"; the run waits for a replacement", "rank", m.rank)
	r.add(retire{m})
	r.members[m.rank] = &member{rank: m.rank, box: m.box, final: m.box}
	if parts := max(1, r.Parts); m.rank%parts != 0 {
		r.members[m.rank].reserved = true
	} else {
		for i := 1; i < parts; i++ {
			r.members[m.rank].guests = append(r.members[m.rank].guests, m.rank+i)
		}
	}
	return nil
}

// handleEarly handles an event before the start.
func (r *shell) handleEarly(o event) error {
	if o.joined != nil {
		r.enroll(o.joined)
		return nil
	}
	m := o.of
	if r.members[m.rank] != m {
		return nil // it was dismissed
	}
	m.quietTicks = 0
	switch {
	case o.exited:
		return r.rootCause(fmt.Errorf("%s ended before the start: %s", m, exitText(o.exit)), false)
	case o.closed != nil:
		if m.child != 0 { // the exit status of its process follows
			m.gone = true
			return nil
		}
		return r.dismiss(m, fmt.Errorf("%s left before the start: %w", m, o.closed))
	case o.sent != nil:
		return fmt.Errorf("cannot send the work to %s: %w", m, o.sent)
	}
	switch msg := o.message.(type) {
	case rendezvous.Listen:
		m.control = msg.Control
		r.info("peer listens", "rank", m.rank, "control", m.control)
	case rendezvous.Ready:
		m.ready = true
	case rendezvous.Leave:
		return r.dismiss(m, fmt.Errorf("%s left before the start", m))
	case rendezvous.Sessions:
		r.change(accounted{m.rank, &msg})
	case rendezvous.Result:
		err := fmt.Errorf("%s cannot take part: %s", m, msg.Error)
		if r.joining && m.child == 0 {
			return r.dismiss(m, err)
		}
		m.result = &msg
		return r.rootCause(err, msg.Lost < 0)
	}
	return nil
}

// causeTime bounds the wait for the root cause of a failure that may be a consequence.
const causeTime = 500 * time.Millisecond

// rootCause returns err if it is sure to be the root cause, and otherwise the error of another peer that failed by
// itself, if one arrives in time.
func (r *shell) rootCause(err error, sure bool) error {
	timeout := time.NewTimer(causeTime)
	defer timeout.Stop()
	for !sure {
		select {
		case o := <-r.inputs:
			if msg, is := o.message.(rendezvous.Result); is && msg.Lost < 0 {
				return fmt.Errorf("%s cannot take part: %s", o.of, msg.Error)
			}
		case <-timeout.C:
			return err
		}
	}
	return err
}
