package peer

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// A message to a lost leader waits until another process leads, and is then dropped. It fails if none does.
func TestMessagesToALostLeader(t *testing.T) {
	for name, next := range map[string]bool{"another leads": true, "none leads": false, "the peer ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				there.Close()
				l := newLeader(rendezvous.NewConn(here, 0))
				require.Error(t, l.Send(rendezvous.Probe{}), "nothing searches for another leader yet")
				l.watch()
				waiting := errors.New("waiting")
				err := waiting
				go func() { err = l.Send(rendezvous.Probe{}) }()
				synctest.Wait()
				require.Equal(t, waiting, err)
				if next {
					other, _ := net.Pipe()
					defer other.Close()
					require.True(t, l.replace(rendezvous.NewConn(other, 0)))
				} else if name == "the peer ends" {
					l.close()
				} else {
					l.end()
				}
				synctest.Wait()
				require.Equal(t, next, err == nil)
				l.close()
				require.True(t, l.over())
				other, _ := net.Pipe()
				require.False(t, l.replace(rendezvous.NewConn(other, 0)), "the peer has ended")
			})
		})
	}
}
