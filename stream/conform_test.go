package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

func open(tb testing.TB, c Config) *Link {
	tb.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1"
	}
	l, err := Open(c)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close()) })
	return l
}

func TestConform(t *testing.T) {
	for name, listen := range map[string]string{"IPv4": "127.0.0.1", "IPv6": "::1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the suite waits for absence of frames
			mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) {
				return open(tb, Config{Name: "a", Listen: listen}), open(tb, Config{Name: "b", Listen: listen})
			})
		})
	}
}
