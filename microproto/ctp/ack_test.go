package ctp

import (
	"encoding/binary"
	"math/bits"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The ring of arrivals has the effect of a set, also where numbers wrap.
func TestArrivalsAreASet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.SampledFrom([]uint32{0, 1, 63, 1<<31 - 70, 1<<32 - 3000}).Draw(rt, "first")
		want, highest := map[uint32]bool{}, uint32(0)
		var a arrivals
		for _, ahead := range rapid.SliceOf(rapid.Uint32Range(1, fifoWindow-1)).Draw(rt, "ahead") {
			if n := first + ahead; !want[n] {
				want[n], highest = true, max(highest, ahead)
				a.add(n)
			}
			if drop := first + rapid.Uint32Range(1, ahead).Draw(rt, "removed"); drop != first+highest {
				a.remove(drop)
				delete(want, drop)
			}
		}
		require.Equal(rt, len(want), a.count)
		if len(want) > 0 {
			require.EqualValues(rt, highest+1, a.behind(first))
		}
		for ahead := range uint32(fifoWindow - 64) {
			n := first + ahead
			require.Equal(rt, want[n], a.has(n))
			require.Equal(rt, want[n], a.from(n)&1 != 0)
			require.Equal(rt, want[n+63], a.from(n)>>63 != 0)
		}
		n := a.missing(first + 1)
		require.False(rt, want[n])
		for k := first + 1; k != n; k++ {
			require.True(rt, want[k], k)
		}
	})
}

// An acknowledgement that another end may send says the same of every number, however one asks.
func TestAcknowledgementsOfAnyBitmap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SampledFrom([]uint32{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 70})
		a := Ack{Next: numbers.Draw(rt, "next"), Seen: rapid.Uint64().Draw(rt, "seen"), More: rapid.Bool().Draw(rt, "more")}
		a.First = rapid.OneOf(rapid.Just(a.Next+1+seenNumbers), numbers).Draw(rt, "first")
		a.Beyond = rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "beyond")
		count := bits.OnesCount64(a.Seen)
		for i := 0; i < len(a.Beyond); i += 8 {
			count += bits.OnesCount64(a.word(i))
			for k := range uint32(64) {
				if a.First == a.Next+1+seenNumbers {
					require.Equal(rt, a.word(i)>>k&1 != 0, a.has(a.First+8*uint32(i)+k))
				}
			}
		}
		require.Equal(rt, !a.More && count == 1, a.single(&arrivals{}, a.Next))
		if n, ok := a.highest(); ok && a.First == a.Next+1+seenNumbers {
			require.True(rt, a.has(n))
			require.False(rt, a.has(n+1))
			require.False(rt, before(a.reported(), n+1))
		}
	})
}

// gapped returns a rig whose first segment of a message of n segments is lost until its time-out.
func gapped(t *testing.T, mtu, n int, o microproto.Options) (*rig, *Retransmit) {
	r := newRig(t, syncEther, o, mtu, 1, calm)
	lose := true
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		keep := end != 0 || !lose
		lose = lose && end != 0
		return keep
	}
	r.open()
	retransmit := r.ends[0].Protocol("Retransmit").(*Retransmit)
	_, err := r.send(0, tag, 1, pattern(n*r.ends[0].Endpoint().(*Synchronous).segmentBytes(), 1))
	require.NoError(t, err)
	return r, retransmit
}

func (s *Synchronous) segmentBytes() int { return *s.segment }

// Every segment that has arrived behind a missing one is reported, also far behind the bitmap of the header.
func TestAcknowledgementsReportTheWholeFlight(t *testing.T) {
	for _, first := range []int64{1, 1<<32 - 300} {
		r, retransmit := gapped(t, 1464, 900, microproto.Options{OptionFirst: first})
		most := 0
		for range 200 {
			r.run(time.Microsecond)
			most = max(most, retransmit.arrived.count)
		}
		require.Equal(t, 899, most)
		r.run(time.Millisecond)
		require.EqualValues(t, 1, r.accepted(0))
		require.EqualValues(t, 1, *retransmit.resent)
	}
}

// Frames that are too short for the whole bitmap report its beginning, and say that there is more.
func TestAcknowledgementsInShortFrames(t *testing.T) {
	r, retransmit := gapped(t, 100, 900, nil)
	ack := r.ends[1].Protocol("PositiveAck").(*PositiveAck)
	require.Less(t, ack.most, 60)
	most := 0
	for range 150 {
		r.run(time.Microsecond)
		if n := retransmit.reported - retransmit.una; n < fifoWindow {
			most = max(most, retransmit.arrived.count)
			require.EqualValues(t, 1+seenNumbers+8*ack.most, n)
		}
	}
	require.Equal(t, seenNumbers+8*ack.most, most)
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0))
}

// A segment of a message replaces an acknowledgement that is due only if it says as much.
func TestSegmentsLeaveTheAcknowledgementDue(t *testing.T) {
	for _, segments := range []int{50, 200} {
		r, _ := gapped(t, 1464, segments, nil)
		r.run(100 * time.Microsecond)
		flags := offsetOf(r.ends[1], attrFlags)
		var alone, more int
		r.OnFrame = func(end int, f microproto.Frame) bool {
			if f.Data[flags]&flagData == 0 {
				alone++
			}
			more += int(f.Data[flags] & flagMore / flagMore)
			return true
		}
		r.do(1, func(x *microproto.Exec) {
			microproto.Raise(x, AckRequested, Now)
			_, err := r.ends[1].Endpoint().Send(x, tag, 1, []byte{1})
			require.NoError(t, err)
		})
		want := min(1, segments/100)
		require.Equal(t, []int{want, want}, []int{alone, more})
	}
}

// A segment that is late is sent again. The acknowledgement says which of the two has arrived.
func TestAcknowledgementsNameTheCopy(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newRig(t, syncEther, nil, 300, 1, calm)
		sent, echoes := 0, []uint8{}
		flags, copies := offsetOf(r.ends[1], attrFlags), offsetOf(r.ends[0], attrCopy)
		r.OnFrame = func(end int, f microproto.Frame) bool {
			if end == 1 {
				echoes = append(echoes, f.Data[flags]>>copyShift)
				return true
			}
			sent++
			require.Equal(t, sent == 6, f.Data[copies] != 0)
			if sent == 1 && late {
				kept := microproto.Frame{Peer: 1, Data: append([]byte(nil), f.Data...)}
				r.Clock.At(r.Clock.Now().Add(120*time.Microsecond), func() { _ = r.ends[1].Input(r.Clock.Now(), kept) })
			}
			return sent > 1
		}
		r.open()
		_, err := r.send(0, tag, 1, pattern(5*r.ends[0].Endpoint().(*Synchronous).segmentBytes(), 1))
		require.NoError(t, err)
		r.run(200 * time.Microsecond)
		require.EqualValues(t, 1, r.accepted(0))
		require.Equal(t, 6, sent)
		require.Equal(t, !late, echoes[4] == 1, echoes)
		s := r.ends[0].Protocol("Retransmit").(*Retransmit).selective
		require.Equal(t, late, s.needless == 1)
		require.Equal(t, late, s.reordered)
	}
	require.Equal(t, []uint8{0, 1, 2, 3, 1},
		[]uint8{copyNumber(0), copyNumber(1), copyNumber(2), copyNumber(3), copyNumber(4)})
	require.LessOrEqual(t, copyNumber(1<<32-1), uint8(maskCopy))
}

// ackFrame returns an acknowledgement alone with a payload, as a peer may send it.
func ackFrame(c *microproto.Composite, next uint32, flags uint8, payload []byte) []byte {
	frame := append(make([]byte, c.HeaderBytes()), payload...)
	frame[1], frame[3] = 1, 1 // ports
	binary.BigEndian.PutUint32(frame[offsetOf(c, attrTotal):], uint32(len(payload)))
	frame[offsetOf(c, attrFlags)] = flags
	binary.BigEndian.PutUint32(frame[offsetOf(c, attrFlags)+1:], next)
	return frame
}

// Payloads that no PositiveAck sends are dropped, and numbers that were not sent have no effect.
func TestMalformedPayloadsOfAcknowledgements(t *testing.T) {
	r, retransmit := gapped(t, 1464, 10, nil)
	beyond := func(first uint32, bitmap ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, first), bitmap...)
	}
	for i, c := range []struct {
		flags   uint8
		payload []byte
		dropped bool
	}{
		{0, beyond(66, 255, 255), false},
		{flagMore, beyond(1<<32-1, 255), false},
		{flagMore, beyond(1<<31, 255), false},
		{0, beyond(0), true},
		{0, []byte{1}, true},
		{0, beyond(66, make([]byte, mostBeyond+1)...), true},
		{1 << 4, nil, true},
		{1 << 7, nil, true},
	} {
		was := r.drops(0, "malformed acknowledgement")
		frame := ackFrame(r.ends[0], 1, c.flags, c.payload)
		require.NoError(t, r.ends[0].Input(r.Clock.Now(), microproto.Frame{Peer: 1, Data: frame}))
		require.Equal(t, c.dropped, r.drops(0, "malformed acknowledgement") > was, i)
		require.Less(t, retransmit.arrived.count, 10, i)
		require.True(t, r.ends[0].Counters().Balanced())
	}
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0))
}
