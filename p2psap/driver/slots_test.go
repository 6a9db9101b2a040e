package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Every call of a socket refuses at once a tag that the session does not declare; a Receive would otherwise
// wait for ever. After Close every call returns ErrClosed.
func TestCallsThatAreRefused(t *testing.T) {
	a, b := start(t, "a", nil), start(t, "b", nil)
	join(t, a, b)
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		sa, _ := open(t, a, b, options(mode.String(), mode))
		ctx, slot := limit(t), &p2psap.Slot{Tag: 77, Data: make([]byte, 64)}
		calls := func(want error) {
			t.Helper()
			_, err := sa.Send(ctx, 77, 1, make([]byte, 8))
			require.ErrorIs(t, err, want)
			_, err = sa.TrySend(77, 1, make([]byte, 8))
			require.ErrorIs(t, err, want)
			_, err = sa.Receive(ctx, slot)
			require.ErrorIs(t, err, want)
			_, _, err = sa.Poll(slot)
			require.ErrorIs(t, err, want)
		}
		calls(p2psap.ErrSlot)
		require.ErrorContains(t, sa.Adapt(ctx, 9), "sync or async")
		require.NoError(t, sa.Close())
		require.NoError(t, sa.Close())
		calls(p2psap.ErrClosed)
		_, err := sa.Wait(ctx, 1)
		require.ErrorIs(t, err, p2psap.ErrClosed)
		_, err = sa.Wait(ctx, 0)
		require.ErrorIs(t, err, p2psap.ErrClosed)
		require.ErrorIs(t, sa.Adapt(ctx, mode), p2psap.ErrClosed)
	}
}
