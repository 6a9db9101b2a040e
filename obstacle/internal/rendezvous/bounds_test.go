package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
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
	for _, text := range []string{`{"residual":-0.5}`, `{"residual":-1}`, `{"busy":-1}`, `{"busy":1e300}`} {
		_, err = Decode(KindBeat, []byte(text))
		require.ErrorIs(t, err, ErrMalformed, text)
	}
	for _, text := range []string{`{"omega":-1}`, `{"omega":2.5}`, `{"omega":1e300}`} {
		_, err = Decode(KindListen, []byte(text))
		require.ErrorContains(t, err, "Omega is", text)
	}
	_, err = Decode(KindBeat, []byte(`{"residual":null}`))
	require.NoError(t, err)
	require.Less(t, int64(maxTime), int64(math.MaxInt64/7))
	require.Less(t, int64(maxMS), math.MaxInt64/int64(4e6))
}

// Values that are not finite are refused in every stream of values, whatever they are for.
func TestChunksHoldFiniteValues(t *testing.T) {
	for stream := StreamProblem; stream < streams; stream++ {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -math.NaN()} {
			for at := range 3 {
				data := make([]byte, 24)
				binary.LittleEndian.PutUint64(data[8*at:], math.Float64bits(v))
				frame, err := Append(nil, Chunk{stream, 0, data})
				require.NoError(t, err)
				if _, err = Decode(KindChunk, frame[frameHeader:]); stream == StreamProblem {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, kernel.ErrNotFinite, "stream %d", stream)
				require.ErrorIs(t, err, ErrMalformed)
			}
		}
	}
}

// Numbers of JSON that a message holds as it is are bounded, too, at any depth.
func TestNested(t *testing.T) {
	type inner struct {
		Rank  int
		Other int64
		Took  time.Duration
		Count uint64
		Share float64
		Of    map[int]uint64
	}
	type outer struct {
		Rank int
		List []*inner
		One  *inner
	}
	one := &inner{Rank: 1, Other: 2, Took: 3, Count: 4, Share: 0.5, Of: map[int]uint64{1: 2}}
	text, err := json.Marshal(outer{3, []*inner{one, one}, one})
	require.NoError(t, err)
	var back outer
	require.NoError(t, Nested(text, &back))
	require.NoError(t, Nested([]byte("{}"), &back))
	bad := numbers(t, outer{3, []*inner{one, one}, one})
	require.Greater(t, len(bad), 100)
	for _, text := range bad {
		var back outer
		if err := Nested(text, &back); err == nil { // a number that is no integer is bounded below only
			require.Regexp(t, `"Share":[0-9e]{4}`, string(text))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	}
	require.ErrorContains(t, Nested([]byte(`{"List": [{}, null]}`), new(outer)), "element 1 of List is null")
	require.ErrorContains(t, Nested([]byte(`{"One": {"Of": {"4611686018427387904": 1}}}`), new(outer)), "Rank is")
}
