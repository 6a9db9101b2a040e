package rail

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

var zeros [100_000]byte

// mark returns a frame of n bytes whose address is a number.
func mark(number uint32, n int) microproto.Frame {
	return microproto.Frame{Peer: microproto.LinkAddr(number), Data: zeros[:n]}
}

func number(f *microproto.Frame) uint32 { return uint32(f.Peer) }

// take lets the link take k frames and refuse the next one. It returns the numbers of those taken.
func take(w *Window, k int) (out []uint32) {
	for {
		frames := w.Frames()
		n := min(k-len(out), len(frames))
		for i := range n {
			out = append(out, number(&frames[i]))
		}
		refused := n < len(frames)
		if w.Sent(n); refused || n == 0 {
			return out
		}
	}
}

// heap is a FrameSource of plain memory.
type heap struct{}

func (heap) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// A payload that waits is copied out of its user's memory, which the user may then change; a synchronous one stays
// there where the link is reliable.
func TestFlatten(t *testing.T) {
	for _, stay := range []bool{false, true} {
		for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			for _, sorted := range []bool{false, true} {
				w, user := Window{BodiesStay: stay}, []byte("payload")
				w.Push(mark(1, 9), Owner{Session: 1, Index: -1})
				w.Push(microproto.Frame{Peer: 2, Data: []byte("head"), Segment: 11, Header: 4, Body: user,
					Mode: mode}, Owner{Session: 1, Index: -1})
				if sorted {
					require.Equal(t, []uint32{1}, take(&w, 1))
				}
				require.Zero(t, w.Flatten(heap{}))
				copy(user, "changed")
				frames := w.Frames()
				f := &frames[len(frames)-1]
				got := string(f.Data) + string(f.Body)
				if stay && mode == microproto.ModeSynchronous {
					require.Equal(t, "headchanged", got)
				} else {
					require.Equal(t, "headpayload", got)
				}
			}
		}
	}
}

func TestPick(t *testing.T) {
	for name, c := range map[string]struct {
		heads, sent classBytes
		want        Class
	}{
		"nothing waits":              {classBytes{}, classBytes{}, noClass},
		"one":                        {classBytes{Bulk: 9}, classBytes{}, Bulk},
		"the most important":         {classBytes{Control: 9, Agreement: 9, Face: 9, Bulk: 9}, classBytes{}, Control},
		"faces before bulk":          {classBytes{Face: 9, Bulk: 100}, classBytes{Face: 799}, Face},
		"faces yield":                {classBytes{Face: 9, Bulk: 100}, classBytes{Face: 800}, Bulk},
		"to a shorter frame earlier": {classBytes{Face: 9, Bulk: 10}, classBytes{Face: 80}, Bulk},
		"agreements do not yield":    {classBytes{Agreement: 9, Face: 9, Bulk: 10}, classBytes{Face: 80}, Agreement},
		"agreements yield":           {classBytes{Agreement: 9, Face: 9, Bulk: 10}, classBytes{Agreement: 72}, Face},
	} {
		require.Equal(t, c.want, pick(&c.heads, &c.sent), name)
	}
}

// While the link takes everything, frames leave in the order of Push. What it refuses is sorted by class, and an
// agreement that comes last goes first.
func TestAgreementOvertakesWhatWaits(t *testing.T) {
	var w Window
	push := func(from, to uint32, o Owner) {
		for i := from; i <= to; i++ {
			w.Push(mark(i, 1000), o)
		}
	}
	push(1, 2, Owner{Session: 1, Index: -1, Class: Bulk})
	push(3, 3, Owner{Session: 2, Index: -1, Class: Agreement})
	require.Equal(t, []uint32{1, 2, 3}, take(&w, 9), "a link that takes everything")
	push(1, 4, Owner{Session: 1, Index: -1, Class: Bulk})
	push(5, 6, Owner{Session: 3, Index: -1, Class: Face})
	require.Equal(t, []uint32{1}, take(&w, 1))
	push(7, 8, Owner{Session: 2, Index: -1, Class: Agreement})
	push(9, 9, Owner{Session: 4, Index: -1, Class: Control})
	require.Equal(t, []uint32{9, 7, 8}, take(&w, 3))
	push(10, 10, Owner{Session: 2, Index: -1, Class: Agreement})
	require.Equal(t, []uint32{10, 5, 6, 2, 3, 4}, take(&w, 9))
	require.Zero(t, w.Len())
	push(1, 1, Owner{Session: 1, Index: -1, Class: Bulk})
	push(2, 2, Owner{Session: 2, Index: -1, Class: Agreement})
	require.Equal(t, []uint32{1, 2}, take(&w, 9), "the empty window does not sort")
}

// An acknowledgement waits behind frames of its own session.
func TestSessionKeepsItsOrder(t *testing.T) {
	var w Window
	w.Push(mark(1, 100), Owner{Session: 1, Index: -1, Class: Bulk})
	w.Push(mark(2, 10), Owner{Session: 1, Index: -1, Class: Control})
	w.Push(mark(3, 100), Owner{Session: 2, Index: -1, Class: Face})
	require.Empty(t, take(&w, 0))
	require.Equal(t, []uint32{3, 1, 2}, take(&w, 9))
}

// A full window gives up values, the oldest of the lowest class, and nothing else.
func TestDisplace(t *testing.T) {
	var w Window
	none := func(below Class, why ...any) {
		_, _, found := w.Displace(below)
		require.False(t, found, why...)
	}
	displaced := func(bytes int) {
		f, session, found := w.Displace(Agreement)
		require.True(t, found)
		require.EqualValues(t, 2, session)
		require.Equal(t, bytes, f.Bytes())
	}
	none(Control)
	w.Push(mark(1, 100), Owner{Session: 1, Index: -1, Class: Bulk})
	w.Push(mark(2, 100), Owner{Session: 2, Index: 0, Class: Face})
	w.Push(mark(3, 120), Owner{Session: 2, Index: 1, Class: Face})
	none(Face)
	displaced(100)
	require.Equal(t, 2, w.Len())
	displaced(120)
	none(Agreement, "synchronous frames are not given up")
	require.Equal(t, []uint32{1}, take(&w, 9))
}

// waitingFrame is a frame in the model of the window.
type waitingFrame struct {
	Owner
	number uint32
}

// Whatever happens, the frames of a session leave in their order, once each, newer values in the places of older
// ones; a session that is discarded leaves nothing.
func TestWindowKeepsEverySessionsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		waiting := map[uint32][]waitingFrame{} // by session
		count, last := 0, uint32(0)
		sessions := []uint32{1 << 16, 1<<16 | 1, 2<<16 | 5, 3<<16 | 9}
		classes := []Class{Agreement, Face, Face, Bulk}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				s := rapid.IntRange(0, 3).Draw(t, "session")
				o := Owner{Session: sessions[s], Index: -1, Class: classes[s]}
				if rapid.Bool().Draw(t, "alone") {
					o.Class = Control
				}
				last++
				f := mark(last, rapid.IntRange(1, len(zeros)).Draw(t, "bytes"))
				if s == 2 {
					o.Class, o.Tag = Face, uint32(rapid.IntRange(1, 2).Draw(t, "tag"))
					o.Index = int32(rapid.IntRange(0, 3).Draw(t, "index"))
				}
				in := waiting[o.Session]
				for i := range in {
					if o.Index >= 0 && in[i].Owner == o {
						in[i].number = last
						require.True(t, w.Replace(f, o))
						return
					}
				}
				require.False(t, w.Replace(f, o))
				w.Push(f, o)
				waiting[o.Session] = append(in, waitingFrame{o, last})
				count++
			},
			"take": func(t *rapid.T) {
				for _, got := range take(&w, rapid.IntRange(0, 8).Draw(t, "frames")) {
					found := false
					for s, in := range waiting {
						if len(in) > 0 && in[0].number == got {
							waiting[s], found = in[1:], true
							count--
						}
					}
					require.True(t, found, "frame %d is not the oldest of its session", got)
				}
			},
			"discard": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
					return
				}
				s := sessions[rapid.IntRange(0, 3).Draw(t, "session")]
				w.Discard(s)
				count -= len(waiting[s])
				delete(waiting, s)
			},
			"": func(t *rapid.T) { require.Equal(t, count, w.Len()) },
		})
		require.Len(t, take(&w, 1<<20), count)
	})
}

// While every class has frames that wait, those below a class get at least 1/(1+yieldAfter) of what it and they send,
// and the sessions of a class send the same number of bytes, but for a turn.
func TestNoClassStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const longest, each = 61_440, 3
		lengths := rapid.SampledFrom([][]int{{60}, {1400}, {60, 1400}, {60, longest}, {60, 1400, longest}}).Draw(t, "lengths")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var w Window
		var sent classBytes
		bySession := map[uint32]int{}
		next := func(c Class, s uint32) {
			n := lengths[random.IntN(len(lengths))]
			w.Push(mark(s, n), Owner{Session: s, Index: -1, Class: c})
		}
		for c := range numClasses {
			for s := range uint32(each) {
				next(c, uint32(c)*each+s)
				next(c, uint32(c)*each+s)
			}
		}
		take(&w, 0)
		for range 6000 {
			f := w.Frames()[:1]
			s, n := number(&f[0]), length(&f[0])
			w.Sent(1)
			sent[s/each] += n
			bySession[s] += n
			next(Class(s/each), s)
		}
		const slack = turnBytes + longest
		below := 0
		for c := Bulk; c < numClasses; c-- {
			if all := below + sent[c]; c != Bulk {
				require.GreaterOrEqual(t, below+yieldAfter*slack, all/(1+yieldAfter), "below class %d", c)
			}
			below += sent[c]
			for s := range uint32(each) {
				first := uint32(c) * each
				require.InDelta(t, bySession[first], bySession[first+s], 2*slack, "class %d", c)
			}
		}
		require.NotZero(t, sent[Bulk])
	})
}

// A frame is overtaken by at most yieldAfter times its length of each class above it, and a turn.
func TestOvertakingIsBounded(t *testing.T) {
	var w Window
	for range 2000 {
		w.Push(mark(1, 1400), Owner{Session: 1, Index: -1, Class: Face})
	}
	w.Push(mark(2, 1400), Owner{Session: 2, Index: -1, Class: Bulk})
	take(&w, 0)
	passed := 0
	for _, n := range take(&w, 2000) {
		if n == 2 {
			break
		}
		passed += 1400
	}
	require.LessOrEqual(t, passed, yieldAfter*1400+turnBytes+1400)
}

// A busy window allocates nothing once it has had its size.
func TestBusyWindowAllocatesNothing(t *testing.T) {
	var w Window
	frames := [8]microproto.Frame{}
	for i := range frames {
		frames[i] = mark(uint32(i), 1400)
	}
	round := func() {
		for i, f := range frames {
			o := Owner{Session: uint32(i % 4), Index: int32(i), Class: Class(i % 4)}
			if !w.Replace(f, o) {
				w.Push(f, o)
			}
		}
		w.Frames()
		w.Sent(1)
		w.Frames()
		w.Sent(0)
	}
	for range 10 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(100, round))
}
