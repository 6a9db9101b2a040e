package ib

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// nodes connects two nodes with an InfiniBand rail beside UDP on loopback.
func nodes(t *testing.T, a, b *Link) (na, nb *driver.Node) {
	t.Helper()
	start := func(name string, l *Link) *driver.Node {
		base, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		n, err := driver.New(driver.Config{
			Name: name, Plain: true, Rails: []driver.Rail{{Link: base}, {Network: p2psap.InfiniBand, Link: l}},
			Listen: "127.0.0.1:0", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "test",
			Linger: 100 * time.Millisecond,
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return n
	}
	na, nb = start("a", a), start("b", b)
	ctx := await.Context(t)
	done := make(chan error, 1)
	go func() { done <- nb.Connect(ctx, "a", na.ControlAddr().String()) }()
	require.NoError(t, na.Connect(ctx, "b", nb.ControlAddr().String()))
	require.NoError(t, <-done)
	return na, nb
}

func sockets(t *testing.T, na, nb *driver.Node, o p2psap.OpenOptions) (sa, sb *driver.Socket) {
	t.Helper()
	ctx := await.Context(t)
	done := make(chan error, 1)
	go func() {
		var err error
		sb, err = nb.Open(ctx, "a", o)
		done <- err
	}()
	sa, err := na.Open(ctx, "b", o)
	require.NoError(t, err)
	require.NoError(t, <-done)
	return sa, sb
}

// Sessions exchange messages over the link: in message mode each is one work request, sent from
// registered memory without a copy. In every mode they arrive intact.
func TestSessionOverTheLink(t *testing.T) {
	const size, messages = 60_000, 50
	for mode, c := range transferModes() {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, software.Config{})
			a, b := r.open("a", c), r.open("b", c)
			na, nb := nodes(t, a, b)
			sa, sb := sockets(t, na, nb, p2psap.OpenOptions{
				Name: "halo", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: size}},
			})
			require.Equal(t, p2psap.InfiniBand, sa.Info().Conditions.Network)
			ctx := await.Context(t)
			before := a.Stats()
			slot := p2psap.Slot{Tag: 1, Data: make([]byte, size)}
			for k := range messages {
				face := sa.Reserve(1, size)
				require.Len(t, face, size)
				for i := range face {
					face[i] = byte(i*7 + k)
				}
				tr, err := sa.Send(ctx, 1, p2psap.Label(k), face)
				require.NoError(t, err)
				got, err := sb.Receive(ctx, &slot)
				require.NoError(t, err)
				require.EqualValues(t, k, got.Label)
				for i := range face {
					if face[i] != slot.Data[i] {
						require.Equal(t, face[i], slot.Data[i], "byte %d of message %d", i, k)
					}
				}
				_, err = sa.Wait(ctx, tr)
				require.NoError(t, err)
			}
			s := a.Stats()
			each := 1
			if c.MessageBytes == 0 {
				each = (size + 8000) / 8080
			}
			require.GreaterOrEqual(t, s.Gathered-before.Gathered, uint64(messages*each))
			require.LessOrEqual(t, s.Requests-before.Requests, uint64(messages*(each+3)))
			require.LessOrEqual(t, s.Copied-before.Copied, uint64(3*messages), "control only")
		})
	}
}
