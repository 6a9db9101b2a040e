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
	"github.com/p2pdc/p2pdc/solver/runner"
)

// epoch is one epoch of a run, at this peer, from the opening of its endpoint to the end of the work in it.
type epoch struct {
	*endpoint
	work    *work           // nil before it was accepted
	ctx     context.Context // ends when a newer epoch begins
	cancel  func()
	unhook  func() bool // from the end of the context of the peer
	runner  *runner.Runner
	relaxed bool
	result  runner.Result
	failure error           // of the relaxation
	others  <-chan struct{} // closed when no other peer of this process relaxes
}

func (p *peer) newEpoch(end *endpoint) *epoch {
	e := &epoch{endpoint: end}
	e.ctx, e.cancel = context.WithCancel(p.running)
	return e
}

// open opens the endpoint of a later epoch.
func (p *peer) open(number int) (*epoch, error) {
	end, err := p.listen(number)
	if err != nil {
		return nil, err
	}
	return p.newEpoch(end), nil
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
