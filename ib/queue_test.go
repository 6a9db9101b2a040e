package ib

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// The queue behaves as a list that is searched linearly.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q queue
		q.init()
		var model []microproto.Frame
		freed, made := 0, 0
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "step") == 0 && len(model) > 0 {
				require.Equal(rt, model[0].Data, q.front().Data)
				f := q.pop()
				require.Equal(rt, model[0].Data, f.Data)
				f.Release()
				model = model[1:]
				continue
			}
			made++
			f := microproto.NewBuffer([]byte{byte(made), byte(made >> 8)}, func(*microproto.Buffer) { freed++ }).Frame(1, 0, 2)
			f.Value = rapid.Uint64Range(0, 200).Draw(rt, "value")
			at := -1
			for i := range model {
				if f.Value != 0 && model[i].Value == f.Value {
					at = i
				}
			}
			replaced := f.Value != 0 && q.replace(f)
			require.Equal(rt, at >= 0, replaced, "value %d", f.Value)
			if replaced {
				model[at] = f
			} else {
				q.push(f)
				model = append(model, f)
			}
			require.Equal(rt, len(model), q.n)
		}
		for _, want := range model {
			f := q.pop()
			require.Equal(rt, want.Data, f.Data)
			f.Release()
		}
		require.Equal(rt, made, freed, "every frame was released once")
	})
}
