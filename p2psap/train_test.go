package p2psap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// Frames that arrived as one are split where the session changes, whatever their lengths, and each has its
// session's header.
func TestJoinedFramesOfSeveralSessions(t *testing.T) {
	const unit = 20
	for _, c := range []struct {
		sessions []SessionID
		last     int // bytes of the last frame
		want     []int
	}{
		{[]SessionID{1, 1, 1}, unit, []int{3}},
		{[]SessionID{1, 1, 2, 2, 2, 1}, unit, []int{2, 3, 1}},
		{[]SessionID{1, 2}, 9, []int{1, 1}},
		{[]SessionID{1, 1}, 3, []int{1, 1}}, // too short for a header
	} {
		var data []byte
		for i, s := range c.sessions {
			b := make([]byte, unit)
			header{run: 7, session: s}.put(b)
			if i == len(c.sessions)-1 {
				b = b[:c.last]
			}
			data = append(data, b...)
		}
		freed := 0
		buffer := microproto.NewBuffer(data, func(*microproto.Buffer) { freed++ })
		f := buffer.Frame(1, 0, len(data))
		f.Segment = unit
		var got []int
		for len(f.Data) > 0 {
			var run microproto.Frame
			run, f = splitHeaders(f)
			got = append(got, run.Count())
			run.Release()
		}
		require.Equal(t, c.want, got)
		require.Equal(t, 1, freed, "every frame was given back, once")
	}
}

func TestEveryFrameOfATrainHasTheHeader(t *testing.T) {
	f := microproto.Frame{Data: make([]byte, 50), Segment: 20}
	h := header{epoch: 3, run: 7, session: 9}
	h.putAll(&f)
	for at := 0; at < len(f.Data); at += f.Segment {
		got, ok := parseHeader(f.Data[at:])
		require.True(t, ok)
		require.Equal(t, h, got)
	}
}

// A session reports the real length of segments, a multiple of 8 bytes.
func TestSegmentSizeIsThatOfSegments(t *testing.T) {
	d := newDuel(0)
	d.mtu = 515
	longest := 0
	d.tap = func(from int, f []byte) bool {
		if from == 0 {
			longest = max(longest, len(f))
		}
		return true
	}
	d.start(microproto.ModeSynchronous, nil)
	for range 50 {
		d.ends[0].sendUnder(2)
	}
	e := d.ends[0]
	info, err := e.n.Info(e.id)
	require.NoError(t, err)
	header := e.n.session(e.id).channel.composite.HeaderBytes()
	require.Greater(t, longest, 8+header)
	require.Equal(t, longest-header, info.SegmentSize)
	require.NotZero(t, (d.mtu-header)%8, "or the test shows nothing")
}
