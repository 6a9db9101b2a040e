package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// until handles what happens before the start until nobody is missing any more;
// any failure ends the run before it has begun. limit 0: no limit but silence.
func (r *run) until(what string, limit time.Duration, missing func() int) error {
	look := time.NewTicker(r.every)
	defer look.Stop()
	left := r.looks(limit)
	for missing() > 0 {
		select {
		case o := <-r.happen:
			if err := r.early(o); err != nil {
				return err
			}
		case <-look.C:
			if err := r.listenEarly(); err != nil {
				return err
			}
			if left--; limit > 0 && left <= 0 {
				return r.late(what, missing(), limit)
			}
		case <-r.Interrupt:
			return ErrInterrupted
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// late is the error of a time that is up.
func (r *run) late(what string, missing int, limit time.Duration) error {
	err := fmt.Errorf("%d of %d peers did not %s within %v (--join-timeout)", missing, len(r.members), what, limit)
	if r.refusal != nil {
		return fmt.Errorf("%w; the last one that left: %w", err, r.refusal)
	}
	return err
}

// listenEarly looks for peers that have been silent for too long.
func (r *run) listenEarly() error {
	for _, m := range r.members {
		if m.conn != nil && m.look(false, r.looks(r.PeerTimeout)) {
			if err := r.giveUp(m, fmt.Errorf("%s before the start", m.silence(r.PeerTimeout))); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveUp does without a peer that cannot take part. While peers join, another one may take
// the place of a peer that was started by hand; otherwise the run ends with why.
func (r *run) giveUp(m *member, why error) error {
	if !r.joining || m.child != nil {
		return why
	}
	r.refusal = why
	r.Log.Warn().Int("rank", m.rank).Msg(why.Error() + "; the run waits for another peer in its place")
	m.conn.Close()
	close(m.out)
	r.members[m.rank] = &member{rank: m.rank, box: m.box, final: m.box}
	return nil
}

// early handles an occurrence before the start.
func (r *run) early(o occurrence) error {
	if o.joined != nil {
		r.seat(o.joined, o.join)
		return nil
	}
	m := o.of
	if r.members[m.rank] != m {
		return nil // it was given up
	}
	m.quiet = 0
	switch {
	case o.exited:
		return r.cause(fmt.Errorf("%s ended before the start: %s", m, exitText(o.exit)), false)
	case o.closed != nil:
		if m.child != nil { // its process tells more, in a moment
			m.gone = true
			return nil
		}
		return r.giveUp(m, fmt.Errorf("%s left before the start: %w", m, o.closed))
	case o.sent != nil:
		return fmt.Errorf("handing the work to %s: %w", m, o.sent)
	}
	switch msg := o.message.(type) {
	case rendezvous.Listen:
		m.control = msg.Control
		r.Log.Info().Int("rank", m.rank).Str("control", m.control).Msg("peer listens")
	case rendezvous.Ready:
		m.ready = true
	case rendezvous.Sessions:
		r.Status.setSessions(m.rank, msg.Sessions)
	case rendezvous.Result:
		err := fmt.Errorf("%s cannot take part: %s", m, msg.Error)
		if r.joining && m.child == nil {
			return r.giveUp(m, err)
		}
		m.result = &msg
		return r.cause(err, msg.Lost < 0)
	}
	return nil
}

// causeTime is how long the launcher looks for the cause of a failure that only
// follows from another one.
const causeTime = 500 * time.Millisecond

// cause is err if it is the first of its kind (sure), or that of another peer
// which failed for a reason of its own.
func (r *run) cause(err error, sure bool) error {
	patience := time.NewTimer(causeTime)
	defer patience.Stop()
	for !sure {
		select {
		case o := <-r.happen:
			if msg, is := o.message.(rendezvous.Result); is && msg.Lost < 0 {
				return fmt.Errorf("%s cannot take part: %s", o.of, msg.Error)
			}
		case <-patience.C:
			return err
		}
	}
	return err
}
