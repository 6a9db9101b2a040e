package rendezvous

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every integer of 64 bits in every message has a span, and no span is unused.
func TestEveryIntegerHasASpan(t *testing.T) {
	used := map[string]bool{}
	var walk func(field string, v reflect.Type)
	walk = func(field string, v reflect.Type) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); f.IsExported() {
					walk(f.Name, f.Type)
				}
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(field, v.Elem())
		case reflect.Map:
			walk("Rank", v.Key())
			walk(field, v.Elem())
		case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
			used[field] = true
		}
	}
	for k, m := range bodies() {
		if m != nil && Kind(k) != KindChunk {
			walk("", reflect.TypeOf(m))
		}
	}
	for field := range used {
		_, known := spans[field]
		require.True(t, known, "%s has no span", field)
	}
	for field := range spans {
		require.True(t, used[field], "%s is a field of no message", field)
	}
}

// extremes are numbers that a process may write in place of a number of a message.
var extremes = []string{
	"9223372036854775807", "-9223372036854775808", "18446744073709551615", "4611686018427387904", "-2", "1e300", "-1e300", "NaN",
}

// numbers returns the JSON text of a message once for each of its numbers and each extreme in its place.
func numbers(t testing.TB, m Message) (out [][]byte) {
	t.Helper()
	text, err := json.Marshal(m)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if number, is := token.(json.Number); is {
			end := d.InputOffset()
			for _, x := range extremes {
				out = append(out, fmt.Appendf(nil, "%s%s%s", text[:int(end)-len(number)], x, text[end:]))
			}
		}
	}
}

// A message with an extreme number is refused, or the number is in its span.
func TestExtremeNumbersOfEveryMessage(t *testing.T) {
	refused := 0
	for _, m := range samples() {
		k := kindOf(m)
		switch r := m.(type) {
		case Chunk:
			continue
		case Record: // the text of losses is decoded by its reader
			r.Losses = []byte("null")
			m = r
		case View:
			r.Losses, r.Moves = nil, nil
			m = r
		}
		for _, text := range numbers(t, m) {
			got, err := Decode(k, text)
			if err != nil {
				require.ErrorIs(t, err, ErrMalformed)
				refused++
				continue
			}
			back, err := json.Marshal(got)
			require.NoError(t, err)
			for _, x := range []string{":9223372036854775807", ":-9223372036854775808", ":4611686018427387904", ":-1e+300"} {
				for _, field := range []string{"max_sweeps", "seed", "sum", "ms"} { // any value
					back = bytes.ReplaceAll(back, []byte(`"`+field+`"`+x), nil)
				}
				require.False(t, strings.Contains(string(back), x), "%T: %s", m, back)
			}
		}
	}
	require.Greater(t, refused, 1000)
	_, err := Decode(KindJoin, []byte(`{"rank":4611686018427387904,"or_spare":true}`))
	require.ErrorContains(t, err, "Rank is 4611686018427387904; it must be -1 to 1048576")
	_, err = Decode(KindBeat, []byte(`{"busy":-2}`))
	require.ErrorContains(t, err, "Busy is -2")
	require.Less(t, int64(maxMS), math.MaxInt64/int64(4e6))
}
