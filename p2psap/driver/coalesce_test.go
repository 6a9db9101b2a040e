package driver

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Small messages sent one after the other share segments and arrive in order.
func TestSmallMessagesCoalesce(t *testing.T) {
	columns := func(c *Config) { c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog() }
	a, b := start(t, "a", columns), start(t, "b", columns)
	join(t, a, b)
	sa, sb := open(t, a, b, options("together", microproto.ModeSynchronous))
	const count = 500 // the queue holds them
	var sent [count][8]byte
	for i := range count {
		binary.BigEndian.PutUint64(sent[i][:], uint64(i))
		transfer, err := sa.Send(limit(t), 2, p2psap.Label(i), sent[i][:])
		require.NoError(t, err)
		require.EqualValues(t, i+1, transfer)
	}
	slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
	for i := range count {
		arrival, err := sb.Receive(limit(t), &slot)
		require.NoError(t, err)
		require.EqualValues(t, i, arrival.Label)
		require.Equal(t, sent[i][:], slot.Data)
	}
	for {
		r, err := sa.Wait(limit(t), count)
		require.NoError(t, err)
		if r.Accepted {
			break
		}
	}
	require.Less(t, sa.Info().SegmentsSent, uint64(count)/2)
}

// A message in the coalescing buffer is sent in the end, although no acknowledgement arrives, no timer of the
// session is due, and its sender makes no further call.
func TestCoalescedMessageIsSentInTheEnd(t *testing.T) {
	columns := func(c *Config) {
		c.Rails[0].Network, c.Catalog, c.PeerTimeout, c.Heartbeat = p2psap.Ethernet, ctp.Catalog(), 2*time.Hour, time.Hour
	}
	a := start(t, "a", func(c *Config) {
		columns(c)
		c.Rails[0].Link = &noReceiver{c.Rails[0].Link.(*ether.Link), make(chan struct{})}
	})
	b := start(t, "b", columns)
	join(t, a, b)
	o := options("alone", microproto.ModeSynchronous)
	o.Options = microproto.Options{ctp.OptionRTOInitial: int64(time.Hour), ctp.OptionRTOMax: int64(time.Hour)}
	sa, sb := open(t, a, b, o)
	slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
	for i := range 10 { // the first ones may meet the last of the control channel's
		_, err := sa.Send(limit(t), 2, p2psap.Label(i), []byte("8 bytes."))
		require.NoError(t, err)
		arrival, err := sb.Receive(limit(t), &slot)
		require.NoError(t, err)
		require.EqualValues(t, i, arrival.Label)
	}
}
