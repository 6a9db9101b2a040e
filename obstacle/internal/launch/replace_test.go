package launch

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// actor is a process that a plan has started, whose part a player plays.
type actor struct {
	once sync.Once
	done chan struct{}
}

func (a *actor) Wait() error   { <-a.done; return nil }
func (a *actor) Kill()         { a.once.Do(func() { close(a.done) }) }
func (a *actor) Stopped() bool { return false }
func (a *actor) Name() string  { return "an actor" }

// If no process can be started in place of a lost one, another peer's process runs its part.
func TestReplacementThatCannotBeStarted(t *testing.T) {
	started := 0
	addresses := make(chan string, 1)
	r := rehearse(t, func(p *Plan) {
		recovering(p)
		p.Spawn = func(_ context.Context, _ int, address string) (Child, error) {
			if started++; started > peers {
				return nil, errors.New("the program was removed")
			}
			if started == peers {
				addresses <- address
			}
			return &actor{done: make(chan struct{})}, nil
		}
	})
	r.address <- <-addresses
	all := r.join()
	all[1].conn.Close()
	all[0].expect(rendezvous.KindEpoch)
	require.Equal(t, rendezvous.Host{Rank: 1}, all[0].expect(rendezvous.KindHost))
}
