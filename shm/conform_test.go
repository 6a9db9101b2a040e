package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// kinds are the two ways to join links. Each returns a function that opens the links of one test.
func kinds() map[string]func() func(tb testing.TB, c Config) *Link {
	open := func(m *Memory) func(tb testing.TB, c Config) *Link {
		return func(tb testing.TB, c Config) *Link {
			c.Memory = m
			l, err := Open(c)
			require.NoError(tb, err)
			tb.Cleanup(func() { _ = l.Close() })
			return l
		}
	}
	return map[string]func() func(tb testing.TB, c Config) *Link{
		"shared memory": func() func(tb testing.TB, c Config) *Link { return open(nil) },
		"memory":        func() func(tb testing.TB, c Config) *Link { return open(NewMemory()) },
	}
}

func TestConform(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the suite waits for absence of frames
			mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) {
				open := kind()
				return open(tb, Config{Name: "a"}), open(tb, Config{Name: "b"})
			})
		})
	}
}
