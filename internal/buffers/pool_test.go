package buffers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// Buffers are scarce once half of the pool is in use. All of the pool is lent, and freed buffers are lent again.
func TestScarce(t *testing.T) {
	var p Pool
	freed := 0
	p.Init(Sizes(1024), 8*1024, func() { freed++ })
	var frames []microproto.Frame
	for i := range 8 {
		b := p.Get(1000, true)
		require.Equal(t, i >= 4, b.Scarce, i)
		frames = append(frames, b.Frame(0, 0, 1000))
	}
	require.Nil(t, p.Get(1000, true))
	require.True(t, p.Exhausted())
	for i := range frames {
		frames[i].Release()
	}
	require.Equal(t, 1, freed)
	require.False(t, p.Get(1000, false).Scarce, "the memory that was scarce is lent again")
}
