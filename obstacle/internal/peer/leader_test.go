package peer

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// A message to a lost leader waits until another process leads, and is then dropped. It fails if none does. The newest
// term may have one keeper, since the next one takes a moment.
func TestMessagesToALostLeader(t *testing.T) {
	for name, next := range map[string]bool{"another leads": true, "none leads": false, "the peer ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				there.Close()
				l := newLeader(rendezvous.NewConn(here, 0))
				require.False(t, l.adopt(register.Term{Number: 2, Leader: "a", Keepers: []string{"a"}}))
				require.True(t, l.adopt(register.Term{Number: 3, Leader: "a", Keepers: []string{"a", "b", "c"}}))
				require.False(t, l.adopt(register.Term{Number: 2, Leader: "b", Keepers: []string{"b"}}))
				require.False(t, l.adopt(register.Term{Number: 4, Leader: "a", Keepers: []string{"a"}}))
				require.False(t, l.adopt(register.Term{Number: 5, Leader: "a", Keepers: []string{"a", "b", "c"}}))
				require.False(t, l.adopt(register.Term{Number: 6, Leader: "a", Keepers: []string{"a"}}))
				require.Equal(t, "a", l.newest().Leader)
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

// A second attempt to find the process that leads comes before that gives up the peer, after twice suspect.
func TestAttemptsToFindTheLeader(t *testing.T) {
	for _, suspect := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
		require.Less(t, attemptTime(suspect)+searchTime, 2*suspect)
		require.LessOrEqual(t, attemptTime(suspect), askTime)
	}
	require.Equal(t, askTime, attemptTime(0))
}
