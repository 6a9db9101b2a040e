package register

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Any messages leave a keeper and a proposal in order: terms never get older, promises are kept, a result stays, and
// whatever is sent is valid and has an encoding.
func FuzzMessages(f *testing.F) {
	var all []byte
	base := samples()[0].Base
	for _, m := range append(samples(), answer(Promise, "l", base, 5), answer(Promise, "k", base, 5),
		answer(Accepted, "l", base, 5), answer(Accepted, "k", base, 5)) {
		text, err := json.Marshal(m)
		require.NoError(f, err)
		f.Add(text)
		all = append(all, text...)
	}
	f.Add(all)
	f.Add(all[bytes.LastIndex(all, []byte(`{"kind":"promise","from":"l"`)):])
	f.Add([]byte(`{"kind": "accept", "from": "p", "to": "k", "base": {"number": -1}, "ballot": {"round": -1}}`))
	f.Add([]byte(`{"kind": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		base, want := term(3, 0, "k", "l", "m"), term(4, 1, "p", "k")
		k := NewKeeper("k", base)
		p, out := NewProposal("p", base, want, 5)
		isSound(t, out)
		decoder := json.NewDecoder(bytes.NewReader(text))
		for range 100 {
			var m Message
			if decoder.Decode(&m) != nil {
				return
			}
			stepKeeper(t, k, m)
			result, ok := p.Result()
			isSound(t, p.Step(m))
			if m.Kind == Refuse {
				isSound(t, p.Retry())
			}
			if ok {
				again, _ := p.Result()
				require.Equal(t, result, again)
			} else if result, ok = p.Result(); ok {
				require.NoError(t, Validate(result))
				require.Greater(t, result.Number, base.Number)
			}
		}
	})
}

// stepKeeper steps a keeper and compares its state with that before.
func stepKeeper(t *testing.T, k *Keeper, m Message) {
	before := *k
	reply, ok := k.Step(m)
	if ok {
		isSound(t, []Message{reply})
	}
	require.NoError(t, Validate(k.newest))
	require.GreaterOrEqual(t, k.newest.Number, before.newest.Number)
	require.False(t, k.promised.less(k.accepted))
	require.Equal(t, k.value != nil, k.accepted.valid())
	if k.newest.Number == before.newest.Number {
		require.Equal(t, before.newest, k.newest)
		require.False(t, k.promised.less(before.promised))
		require.False(t, k.accepted.less(before.accepted))
	}
}

// isSound checks messages that are sent.
func isSound(t *testing.T, out []Message) {
	for _, m := range out {
		require.True(t, m.valid(), "%+v", m)
		text, err := json.Marshal(m)
		require.NoError(t, err)
		var again Message
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, m, again)
	}
}
