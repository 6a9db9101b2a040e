package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

const trainBytes = 65507

func (r *rig) exchange(t require.TestingT, messages, size int) {
	sent, got := 0, 0
	for range 200_000 {
		for sent < messages {
			_, err := r.send(0, tag, uint64(sent), pattern(size, uint64(sent)))
			if err != nil {
				require.ErrorIs(t, err, microproto.ErrBusy)
				break
			}
			sent++
		}
		r.run(time.Millisecond)
		data, _ := r.drain(1, size)
		for _, d := range data {
			require.Equal(t, pattern(size, uint64(got)), d, "message %d", got)
			got++
		}
		if got == messages && r.accepted(0) == uint64(messages) {
			return
		}
	}
	require.Fail(t, "no progress", "sent %d, received %d", sent, got)
}

// Without faults a message consists of few trains at both ends. With faults trains are split at
// both ends, and nothing is lost, duplicated or out of order. The counters count segments where
// the wire has segments.
func TestTrains(t *testing.T) {
	const messages, size, mtu = 40, 50_000, 500
	for name, f := range map[string]mptest.Faults{
		"calm": calm, "losses": {Delay: 100 * time.Microsecond, Loss: 0.02, Duplicate: 0.05, Reorder: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrainRig(t, syncEther, nil, mtu, trainBytes, 3, f).open()
			frames, whole := 0, 0
			r.OnFrame = func(end int, f microproto.Frame) bool {
				if end == 0 {
					frames++
					if f.Segment > 0 {
						whole++
					}
				}
				return true
			}
			r.exchange(t, messages, size)
			segments := uint64(size/(mtu-r.ends[0].HeaderBytes())) * messages
			a, b := r.ends[0].Counters(), r.ends[1].Counters()
			require.GreaterOrEqual(t, a.Transmitted, segments)
			require.GreaterOrEqual(t, b.SegmentsIn, segments)
			require.Less(t, b.Inputs, b.SegmentsIn*3/4, "the receiver handles trains")
			if name == "calm" {
				require.LessOrEqual(t, frames, messages*4)
				require.LessOrEqual(t, uint64(frames), a.Transmitted/20, "the sender forms trains")
			} else {
				resent := *r.ends[0].Protocol("Retransmit").(*Retransmit).resent
				require.Greater(t, resent, uint64(messages))
				require.Less(t, resent, segments, "lost segments are sent again, not their train")
			}
			require.NoError(t, r.Pair.Close())
			require.True(t, r.ends[0].Counters().Balanced() && r.ends[1].Counters().Balanced())
			require.Zero(t, r.ends[0].Counters().Live+r.ends[1].Counters().Live)
		})
	}
}

// A segment in the middle of a train is lost: only that one is sent again.
func TestLossWithinTrain(t *testing.T) {
	r := newTrainRig(t, syncEther, nil, 500, trainBytes, 1, calm)
	cut, mute := false, true
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end != 0 || cut || f.Segment == 0 {
			return end != 0 || !cut || !mute
		}
		cut = true
		at, i := r.Clock.Now(), 0
		f.Retain().Pieces(func(p microproto.Frame) {
			if i != 7 {
				r.Clock.At(at.Add(time.Duration(50+i)*time.Microsecond),
					func() { require.NoError(t, r.ends[1].Input(r.Clock.Now(), p)) })
			}
			i++
		})
		return false
	}
	r.open()
	_, err := r.send(0, tag, 0, pattern(20_000, 0))
	require.NoError(t, err)
	r.run(time.Millisecond)
	require.True(t, cut)
	require.Zero(t, r.accepted(0), "the segments before the lost one are not the transfer")
	mute = false
	r.run(time.Second)
	got, _ := r.drain(1, 20_000)
	require.Equal(t, [][]byte{pattern(20_000, 0)}, got)
	require.EqualValues(t, 1, r.accepted(0))
	require.EqualValues(t, 1, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent)
	require.NoError(t, r.Pair.Close())
}

// A Frame may hold segments of several messages. Segments released by the first go up before the
// next.
func TestFramesInOneKeepTheirOrder(t *testing.T) {
	r := newTrainRig(t, syncEther, nil, 500, trainBytes, 1, calm)
	var frames [][]byte
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 {
			frames = append(frames, append([]byte(nil), f.Data...))
		}
		return end != 0
	}
	r.open()
	for k := range uint64(5) {
		_, err := r.send(0, tag, k, pattern(100, k))
		require.NoError(t, err)
	}
	require.Len(t, frames, 5)
	now := r.Clock.Now()
	for _, early := range frames[1:4] {
		require.NoError(t, r.ends[1].Input(now, microproto.Frame{Peer: 1, Data: early}))
	}
	joined := append(append([]byte(nil), frames[0]...), frames[4]...)
	require.NoError(t, r.ends[1].Input(now, microproto.Frame{Peer: 1, Data: joined, Segment: len(frames[0])}))
	_, labels := r.drain(1, 100)
	require.Equal(t, []uint64{0, 1, 2, 3, 4}, labels)
}

// Without messages in the pool a train cannot be split, and split trains never take the messages
// needed for acknowledgements. Nothing is lost in either case.
func TestTrainsOfASmallPool(t *testing.T) {
	for i, names := range [][]string{syncEther, syncInter, syncInter} {
		for _, messages := range []int{12, 30, 200} {
			r := &rig{tb: t}
			o := microproto.Options{OptionRTOFloor: int64(5 * time.Millisecond), OptionSelective: int64(i / 2)}
			for i := range r.ends {
				c, err := microproto.NewComposite(microproto.Config{
					Name: string(rune('a' + i)), MTU: 200, Train: trainBytes,
					Limits: microproto.Limits{Messages: messages},
				}, build(t, names, o)...)
				require.NoError(t, err)
				r.ends[i] = c
			}
			r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 5,
				mptest.Faults{Delay: 100 * time.Microsecond, Loss: 0.02, Reorder: 0.02})
			r.open()
			r.exchange(t, 12, 20_000)
			require.NoError(t, r.Pair.Close())
			require.True(t, r.ends[0].Counters().Balanced() && r.ends[1].Counters().Balanced())
		}
	}
}

// A peer sends arbitrary bytes as several frames in one.
func FuzzTrainInput(f *testing.F) {
	f.Add(uint16(60), make([]byte, 600))
	f.Add(uint16(0), []byte{1})
	r := newTrainRig(f, syncInter, nil, 200, trainBytes, 1, calm)
	r.OnFrame = func(end int, frame microproto.Frame) bool {
		if end == 0 && frame.Segment > 0 {
			f.Add(uint16(frame.Segment), frame.Data)
		}
		return true
	}
	r.open()
	r.exchange(f, 1, 2000)
	f.Fuzz(func(t *testing.T, segment uint16, data []byte) {
		c, err := microproto.NewComposite(microproto.Config{
			Name: "f", MTU: 200, Train: trainBytes, Limits: microproto.Limits{Messages: 64},
		}, build(t, syncInterNamed[:len(syncInterNamed)-len(data)%2], microproto.Options{OptionReceive: 8192,
			OptionPeerReceive: 8192, OptionSelective: int64(len(data) / 2 % 2)})...)
		require.NoError(t, err)
		require.NoError(t, c.Open(0))
		for now := range microproto.Instant(2) {
			_ = c.Input(now, microproto.Frame{Peer: 1, Data: data, Segment: int(segment)})
			_ = c.Advance(now.Add(time.Second))
			for _, out := range c.Drain(nil) {
				out.Frame.Release()
				c.Recycle(out.Message)
			}
			require.True(t, c.Counters().Balanced())
		}
		_ = c.Close(3e9)
		require.Zero(t, c.Counters().Live)
	})
}

// If the layer below gathers, frames leave payloads in the user's memory: they are the same
// frames, and after Flatten they do not refer to it any more.
func TestGatheredFramesAreTheSame(t *testing.T) {
	for _, column := range [][]string{syncEther, asyncEther} {
		var got [2][][]byte
		for i := range got {
			c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 500, Train: trainBytes,
				Gather: 2000 * i}, build(t, column, nil)...)
			require.NoError(t, err)
			require.NoError(t, c.Open(0))
			require.NoError(t, c.Endpoint().Slot(tag, 50_000))
			bodies := 0
			for n, size := range []int{50_000, 8, 1600, 0, 20_000} {
				data := pattern(size, uint64(n))
				require.NoError(t, c.Do(0, func(x *microproto.Exec) {
					_, err = c.Endpoint().Send(x, tag, uint64(n)+1, data[:size&^7])
				}))
				if err != nil { // an asynchronous slot has one length
					require.Equal(t, asyncEther, column)
					continue
				}
				for range 40 {
					require.NoError(t, c.Advance(0))
				}
				if n == 0 { // as those that wait
					c.Flatten()
					clear(data)
				}
				for _, o := range c.Drain(nil) {
					if o.Frame.Body != nil {
						bodies++
					}
					o.Frame.Flatten(&datagrams{}).Pieces(func(p microproto.Frame) { got[i] = append(got[i], p.Data) })
				}
			}
			require.Equal(t, i == 1 && len(column) == len(syncEther), bodies > 0)
		}
		require.Equal(t, got[0], got[1])
	}
}
