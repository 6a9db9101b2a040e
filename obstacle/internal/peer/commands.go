package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// commands are the messages of the launcher, which one goroutine receives.
type commands struct {
	start chan struct{}   // closed by Start
	stop  chan struct{}   // closed by Stop
	lost  chan struct{}   // closed by Lost
	bye   chan struct{}   // closed at the end of the connection
	why   rendezvous.Lost // valid after lost is closed
	ended bool            // the connection ended by Bye; valid after bye is closed
	moved bool            // another process runs the part; valid with ended
	early bool            // the run has ended before its tolerance; valid with ended
	alone error           // why no process that leads the run was found; valid after bye is closed

	work chan *work // of the newest epoch

	mu    sync.Mutex
	epoch int           // the newest
	gone  []int         // ranks of the peers whose loss began it; see rendezvous.Epoch
	newer chan struct{} // closed when epoch grows
}

func newCommands(epoch int) *commands {
	return &commands{
		start: make(chan struct{}), stop: make(chan struct{}), lost: make(chan struct{}), bye: make(chan struct{}),
		work: make(chan *work, 1), epoch: epoch, newer: make(chan struct{}),
	}
}

// newest returns the number of the newest epoch.
func (c *commands) newest() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// after returns a channel that is closed when an epoch after the given one begins.
func (c *commands) after(epoch int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch > epoch {
		now := make(chan struct{})
		close(now)
		return now
	}
	return c.newer
}

// lostRanks returns the ranks of the peers whose loss began the newest epoch.
func (c *commands) lostRanks() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

func (c *commands) begin(e rendezvous.Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Epoch <= c.epoch {
		return
	}
	c.epoch, c.gone = e.Epoch, e.Lost
	close(c.newer)
	c.newer = make(chan struct{})
}

// deliver passes on work, in place of that of a former epoch that nobody has taken.
func (c *commands) deliver(w *work) {
	select {
	case <-c.work:
	default:
	}
	c.work <- w
}

func closeOnce(c chan struct{}) {
	if !closed(c) {
		close(c)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// receive receives the messages of the launcher until the end of the run. If the launcher is lost and the run has
// keepers, another process leads it then.
func (p *peer) receive(ctx context.Context) {
	defer close(p.commands.bye)
	defer p.leader.end()
	for conn := p.leader.now(); conn != nil; conn = p.findLeader(ctx) {
		p.in = conn
		if p.receiveFrom(conn); p.commands.ended || closed(p.commands.lost) {
			return
		}
	}
}

// receiveFrom receives the messages of one connection until Bye or an error.
func (p *peer) receiveFrom(conn *rendezvous.Conn) {
	c := p.commands
	for {
		m, err := conn.Receive(rendezvous.KindAssign, rendezvous.KindStart, rendezvous.KindStop, rendezvous.KindLost,
			rendezvous.KindBye, rendezvous.KindEpoch, rendezvous.KindCapture, rendezvous.KindHost,
			rendezvous.KindProbe, rendezvous.KindKeep, rendezvous.KindTerm, rendezvous.KindRecord, rendezvous.KindResend,
			rendezvous.KindHeld)
		if err != nil {
			if errors.Is(err, rendezvous.ErrMalformed) {
				c.deliver(&work{err: err})
			}
			return
		}
		switch m := m.(type) {
		case rendezvous.Assign:
			p.waiting.end()
			w := p.receiveWork(m)
			if errors.Is(w.err, errLauncherLeft) {
				return
			}
			c.deliver(w)
		case rendezvous.Start:
			closeOnce(c.start)
		case rendezvous.Stop:
			closeOnce(c.stop)
		case rendezvous.Lost:
			if !closed(c.lost) {
				c.why = m
				close(c.lost)
			}
		case rendezvous.Epoch:
			c.begin(m)
		case rendezvous.Capture:
			switch {
			case m.Copy != nil:
				p.sendCopy(conn, m)
			case m.Sample != nil:
				p.sample(conn, m)
			default:
				p.capture(conn, m)
			}
		case rendezvous.Host:
			p.host(m.Rank)
		case rendezvous.Keep:
			p.keep(conn, m)
		case rendezvous.Term:
			if p.leader.adopt(m.Term) {
				_ = conn.CloseWhenDead(p.silence())
				p.log.Debug().Uint64("term", uint64(m.Term.Number)).Msg("another process can lead the run")
			}
			p.keeping.adopt(m.Term)
		case rendezvous.Record:
			p.keeping.take(&m)
		case rendezvous.Held:
			if p.hold(m) != nil {
				conn.Close()
				return
			}
		case rendezvous.Resend:
			p.ends.resend(conn, m.From)
		case rendezvous.Bye:
			c.ended, c.moved, c.early = true, m.Moved, m.Early
			return
		}
	}
}

// receiveStream receives the chunks of one stream, in order, until total bytes have arrived.
func (p *peer) receiveStream(s rendezvous.Stream, total int64, take func([]byte)) error {
	for at := int64(0); at < total; {
		m, err := p.in.Receive(rendezvous.KindChunk)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errLauncherLeft
			}
			return err
		}
		c := m.(rendezvous.Chunk)
		if c.Stream != s || c.Offset != at || len(c.Data) == 0 || int64(len(c.Data)) > total-at ||
			len(c.Data)%8 != 0 && s != rendezvous.StreamProblem {
			return fmt.Errorf("unexpected chunk of stream %d at %d with %d bytes: stream %d is at %d of %d",
				c.Stream, c.Offset, len(c.Data), s, at, total)
		}
		take(c.Data)
		at += int64(len(c.Data))
	}
	return nil
}

// awaitStart waits for Start, which comes once in a run. It returns an error if the run was lost or ended before Start, or
// if an epoch after the given one has begun, since a peer was lost. If Start came first, the run has started, even if it
// was lost before this goroutine runs again: the launcher then waits for this peer's block.
func (c *commands) awaitStart(epoch int) error {
	newer := c.after(epoch)
	select {
	case <-c.start:
	case <-c.lost:
	case <-c.bye:
	case <-newer:
	}
	switch {
	case closed(c.start): // Start comes before Lost and Bye
		return nil
	case closed(c.lost):
		return c.failed()
	case closed(newer):
		return errNextEpoch
	}
	return errLauncherLeft
}

// failed returns the error of a run that is lost.
func (c *commands) failed() error {
	out := &ReportedError{Text: c.why.Why}
	if c.why.CutOff {
		out.cause = ErrCutOff
	}
	return out
}
