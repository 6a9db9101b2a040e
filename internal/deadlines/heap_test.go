package deadlines

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// The heap behaves like a list that is searched from end to end.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap
		model := map[int32]microproto.Instant{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(model) == 0 || rapid.IntRange(0, 9).Draw(t, "what") > 2 {
				index := rapid.Int32Range(0, 40).Draw(t, "index")
				deadline := microproto.Instant(rapid.IntRange(0, 30).Draw(t, "deadline"))
				if deadline == 0 {
					h.Set(index, microproto.Never)
					delete(model, index)
				} else {
					h.Set(index, deadline)
					model[index] = deadline
				}
			} else {
				first := h.First()
				index := h.Take()
				require.Equal(t, first, model[index])
				delete(model, index)
			}
			first := microproto.Never
			for _, deadline := range model {
				first = min(first, deadline)
			}
			require.Equal(t, first, h.First())
			require.Len(t, h.heap, len(model))
		}
	})
}
