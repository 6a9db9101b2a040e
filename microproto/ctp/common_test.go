package ctp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// commonColumn is a composition with tight limits, so that segments leave the common case.
type commonColumn struct {
	name    string
	names   []string
	options microproto.Options
	limits  microproto.Limits
	faults  mptest.Faults
}

func commonColumns() []commonColumn {
	// The other end sends more than the queue holds, and a Send that waits for credit probes.
	tight := func(inFlight int64) microproto.Options {
		return microproto.Options{OptionReceive: 6000, OptionPeerReceive: 9000, OptionInFlightCount: inFlight,
			OptionRTOInitial: int64(50 * time.Microsecond), OptionRTOFloor: int64(20 * time.Microsecond)}
	}
	few := microproto.Limits{Outputs: 16, Messages: 16}
	return []commonColumn{
		{"reliable link", syncReady, microproto.Options{OptionReceive: 6000, OptionPeerReceive: 6000},
			microproto.Limits{Outputs: 16}, calm},
		{"intra", syncEther, tight(20), few, calm},
		{"intra, frames are lost", syncEther, tight(3), few, mptest.Faults{
			Delay: 20 * time.Microsecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 50 * time.Microsecond,
		}},
	}
}

// commonRig is a rig over a reliable link that writes down what its user and the link see.
type commonRig struct {
	*rig
	seen   []string
	frames [2][][]byte // sent by each end
	dst    [2][]byte
}

func newCommonRig(t require.TestingT, column commonColumn, traced bool) *commonRig {
	r := &commonRig{rig: &rig{tb: t}}
	for i := range r.ends {
		config := microproto.Config{Name: string(rune('a' + i)), MTU: 600, Limits: column.limits}
		if traced {
			config.Tracer = mptest.NewTraceHash()
		}
		c, err := microproto.NewComposite(config, build(t, column.names, column.options)...)
		require.NoError(t, err)
		require.Equal(t, !traced, c.HasCommonPath())
		r.ends[i], r.dst[i] = c, make([]byte, 6000)
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, column.faults)
	r.OnFrame = func(end int, f microproto.Frame) bool {
		r.note("%v: %d: %x", r.Clock.Now(), end, f.Data)
		r.frames[end] = append(r.frames[end], bytes.Clone(f.Data))
		return true
	}
	r.open()
	return r
}

func (r *commonRig) note(format string, args ...any) {
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

// step is an operation of the user at an end, or a changed frame from its peer.
type step struct {
	kind, end, n, at int
	value            byte
	wait             time.Duration
}

func (r *commonRig) step(s step) {
	c := r.ends[s.end]
	ep := c.Endpoint().(*Synchronous)
	var a microproto.Arrival
	var err error
	data := pattern(s.n, uint64(s.n))
	failed := c.Do(r.Clock.Now(), func(x *microproto.Exec) {
		switch s.kind {
		case 0, 1:
			_, err = ep.Send(x, uint32(s.at%3), 1, data)
		case 2:
			_, err = ep.SendMore(x, uint32(s.at%3), 2, data[:min(s.n, 100)])
		case 3:
			err = ep.Flush(x)
		case 4:
			ep.Post(uint32(s.at%3), r.dst[s.end])
		default:
			if a, err = ep.Receive(x, uint32(s.at%3), r.dst[s.end], nil); err == nil {
				r.note("received %x", r.dst[s.end][:a.Length])
			}
		}
	})
	if frame := r.frame(s); frame != nil {
		failed = c.Input(r.Clock.Now(), microproto.Frame{Peer: 1, Data: frame})
	}
	_, broken := r.Run(s.wait)
	r.note("%+v: %+v %v %v %v, accepted %d, %+v", s, a, err, failed, broken, ep.Accepted(), c.Counters())
}

// frame returns a frame that came before, perhaps changed, or one that no Synchronous makes.
func (r *commonRig) frame(s step) []byte {
	if f := r.frames[1-s.end]; s.kind == 6 && len(f) > 0 {
		frame := bytes.Clone(f[s.at%len(f)])
		if s.value != 255 {
			frame[s.n%len(frame)] = s.value
		}
		return frame
	}
	if s.kind != 7 {
		return nil
	}
	h := binary.BigEndian.AppendUint32(nil, [...]uint32{1<<16 | 1, 1<<16 | 2}[min(s.value&3, 3)/3])
	h = binary.BigEndian.AppendUint32(h, uint32(8*(s.at&1)))
	h = binary.BigEndian.AppendUint32(h, uint32(s.n+(s.at>>1&1)))
	h = binary.BigEndian.AppendUint32(h, [...]uint32{0, 1, grantTag, coalescedTag}[s.at>>2&3])
	h = binary.BigEndian.AppendUint64(h, uint64(s.value))
	return append(h, bytes.Repeat([]byte{s.value}, s.n)...)
}

// The common path has the effect of the chains, whatever users and peers do.
func TestCommonPathEqualsChains(t *testing.T) {
	steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			kind: rapid.IntRange(0, 7).Draw(rt, "kind"), end: rapid.IntRange(0, 1).Draw(rt, "end"),
			n:     rapid.SampledFrom([]int{0, 1, 8, 21, 100, 576, 577, 2000, 3000}).Draw(rt, "n"),
			at:    rapid.IntRange(0, 30).Draw(rt, "at"),
			value: rapid.SampledFrom([]byte{0, 1, 2, 8, 254, 255}).Draw(rt, "value"),
			wait:  time.Duration(rapid.IntRange(0, 2).Draw(rt, "wait")) * 40 * time.Microsecond,
		}
	}), 40, 60)
	for _, c := range commonColumns() {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				common, chains := newCommonRig(rt, c, false), newCommonRig(rt, c, true)
				for _, s := range steps.Draw(rt, "steps") {
					common.step(s)
					chains.step(s)
					require.Equal(rt, chains.seen, common.seen)
					common.seen, chains.seen = nil, nil
				}
			})
		})
	}
}

// A message of one segment between the segments of another one, which no Resize sends, ends that one.
func TestCommonPathAmongSegments(t *testing.T) {
	for _, traced := range []bool{false, true} {
		r := newCommonRig(t, commonColumns()[0], traced)
		r.OnFrame = func(end int, f microproto.Frame) bool {
			r.frames[end] = append(r.frames[end], bytes.Clone(f.Data))
			return false
		}
		for _, n := range []int{1000, 8} {
			_, err := r.send(0, tag, 1, pattern(n, 1))
			require.NoError(t, err)
			r.run(time.Microsecond)
		}
		require.Len(t, r.frames[0], 3)
		for _, i := range []int{0, 2, 1} {
			require.NoError(t, r.ends[1].Input(0, microproto.Frame{Peer: 1, Data: r.frames[0][i]}))
		}
		require.EqualValues(t, 1, r.ends[1].Endpoint().Arrivals())
		require.EqualValues(t, 1, r.drops(1, "segment out of place"))
	}
}

// Unacknowledged messages fill the window and the pool on the common path as they do in the chains.
func TestCommonPathFillsTheWindow(t *testing.T) {
	for _, c := range commonColumns() {
		common, chains := newCommonRig(t, c, false), newCommonRig(t, c, true)
		for i := range 40 {
			s := step{kind: 0, n: 8, wait: time.Duration(i/39) * time.Millisecond}
			common.step(s)
			chains.step(s)
		}
		require.Equal(t, chains.seen, common.seen, c.name)
	}
}
