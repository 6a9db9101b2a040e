package seal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOpen passes arbitrary bytes to an end in use: only frames that the other end has sealed
// pass, each once, and later frames still do.
func FuzzOpen(f *testing.F) {
	a, _ := newPair(f)
	sealed := a.seal([]byte("a frame that the other end has sealed"))
	f.Add([]byte{})
	f.Add(sealed)
	f.Add(sealed[:room])
	f.Add(sealed[:room+TagBytes])
	f.Add(append(bytes.Clone(sealed), 1))
	f.Add(bytes.Repeat([]byte{255}, 64))
	f.Fuzz(func(t *testing.T, wire []byte) {
		a, b := newPair(t)
		genuine := a.seal([]byte("a frame that the other end has sealed"))
		got := b.open(wire)
		if got != nil {
			require.Equal(t, genuine, wire, "a frame that nobody has sealed has passed")
		}
		require.Equal(t, got == nil, b.open(genuine) != nil)
		require.NotNil(t, b.open(a.seal([]byte("and on"))))
		b.balanced()
	})
}
