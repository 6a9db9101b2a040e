package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// errNextEpoch ends the work of an epoch because a newer one begins.
var errNextEpoch = errors.New("a newer epoch begins")

// epoch is one epoch of a run, at this peer: work, and an endpoint that is connected to the neighbours.
type epoch struct {
	*endpoint
	work *work
	ctx  context.Context // ends when a newer epoch begins
	err  error           // why the peer cannot take part
}

// follow enters one epoch after the other and passes it on, until ctx ends. While it enters, an asynchronous run of the
// epoch before goes on.
func (p *peer) follow(ctx context.Context, end *endpoint, out chan<- *epoch) {
	var entered *epoch // the newest that was passed on, in which the peer relaxes, or is about to
	for {
		at := end.epoch
		newer := p.commands.after(at)
		within, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-newer:
			case <-within.Done():
			}
			cancel()
		}()
		e, err := p.enter(within, end)
		if err != nil {
			e = &epoch{endpoint: end, err: err}
		}
		if within.Err() == nil {
			p.values.abandon(end.epoch)
			select {
			case out <- e:
				entered = e
			case <-within.Done():
				end.abort()
			}
		} else {
			end.abort()
		}
		select {
		case <-newer:
		case <-ctx.Done():
			cancel()
			return
		}
		cancel()
		p.endOrGoOn(entered, p.commands.lostRanks())
		p.copies.endEpoch(at)
		if end, err = p.listenAgain(p.commands.newest()); err != nil {
			select {
			case out <- &epoch{err: err}:
			case <-ctx.Done():
			}
			return
		}
	}
}

// endOrGoOn ends the relaxation of an epoch if it stops as soon as the given peers are lost. The launcher waits for the
// repair of their blocks before it gives work to a peer that relaxes on.
func (p *peer) endOrGoOn(e *epoch, lost []int) {
	switch {
	case e == nil || e.err != nil:
	case e.stops(p.welcome.Rank, lost):
		p.values.abandon(p.commands.newest())
	default:
		p.log.Debug().Ints("lost", lost).Msg("relaxing on until the next epoch begins")
	}
}

// listenAgain opens the endpoint of a later epoch and reports it. If there are too few ports for two endpoints, it first
// ends the epoch before.
func (p *peer) listenAgain(number int) (*endpoint, error) {
	end, err := p.listen(number)
	if err != nil {
		p.values.abandon(number)
		if end, err = p.listen(number); err != nil {
			return nil, err
		}
	}
	p.ends.suspend() // what follows the report belongs to the new epoch
	if err := end.report(); err != nil {
		end.abort()
		return nil, errLauncherLeft
	}
	return end, nil
}

// enter waits for the work of an epoch, repairs the block if the peer has no values for it, and connects to the
// neighbours.
func (p *peer) enter(ctx context.Context, end *endpoint) (*epoch, error) {
	for {
		select {
		case w := <-p.commands.work:
			switch {
			case w.err != nil:
				return nil, w.err
			case w.assign.Epoch != end.epoch:
				continue
			}
			end.assign = &w.assign
			if err := p.resume(w); err != nil {
				return nil, err
			}
			if _, box := p.values.held(); w.assign.Repair != nil && box != p.box() {
				if err := p.repair(ctx, end, w); err != nil {
					return nil, err
				}
			}
			e := &epoch{endpoint: end, work: w, ctx: ctx}
			return e, end.connect(ctx, e.links())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// links returns the ranks of the peers that this one has sessions with.
func (e *epoch) links() (out []iterate.Rank) {
	for _, l := range e.p.Catalog.Methods.Links(&e.work.config, iterate.Rank(e.p.welcome.Rank)) {
		out = append(out, l.Rank)
	}
	if to, of, is := e.buddies(); is {
		out = append(out, to, of)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// connectTimeouts bounds the time to connect to the neighbours, in peer timeouts. It is enough for round trips of 0.4 peer timeouts,
// as those of 4 s.
const connectTimeouts = 3

// connectError is the error of a connection to another peer.
type connectError struct{ error }

// Unwrap returns the reason.
func (e *connectError) Unwrap() error { return e.error }

// connect opens control associations with all neighbours at once. That takes up to six round trips, including those
// of TCP and TLS, so it may take longer than the peer timeout. The launcher detects a neighbour that is lost
// meanwhile.
func (e *endpoint) connect(ctx context.Context, to []iterate.Rank) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeouts*e.p.timeout())
	defer cancel()
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for i, n := range to {
		m := e.assign.Members[n]
		all.Go(func() {
			if err := e.node.Connect(ctx, nodeName(m.Rank, e.epoch), m.Control); err != nil {
				errs[i] = &connectError{unconnected(&m, e.p.timeout(), err)}
			}
		})
	}
	all.Wait()
	e.noteComparisons(to)
	return errors.Join(errs...)
}

// unconnected returns the error of a neighbour to which no connection was opened.
func unconnected(m *rendezvous.Member, timeout time.Duration, err error) error {
	remedy := ""
	if errors.Is(err, context.DeadlineExceeded) {
		remedy = fmt.Sprintf("; connecting takes up to six round trips, and has %d times the %v of --peer-timeout: give more "+
			"where round trips take seconds, and else let TCP pass between the hosts", connectTimeouts, timeout)
	}
	return fmt.Errorf("cannot connect to peer %d on %s at %s: %w%s", m.Rank, m.Host, m.Control, err, remedy)
}
