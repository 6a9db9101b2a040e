package pacing

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
)

const (
	tag = 1
	mtu = 600
)

// build returns the micro-protocols of a column, with Pacing if gap is not 0.
func build(t require.TestingT, c microproto.Column, gap time.Duration) []microproto.MicroProtocol {
	row := Row()
	row.Options[OptionGap] = int64(gap)
	policy := p2psap.TablePolicy{}
	if gap > 0 {
		policy.Optional = []p2psap.OptionalRow{row}
	}
	where := p2psap.OtherCluster
	if c.Intra {
		where = p2psap.SameCluster
	}
	composed, err := policy.Compose(p2psap.Conditions{Mode: c.Mode, Locality: where, Network: p2psap.Ethernet})
	require.NoError(t, err)
	catalog := ctp.Catalog()
	require.NoError(t, catalog.AddRow(Row()))
	mps, err := catalog.Build(composed.Protocols, composed.Options)
	require.NoError(t, err)
	return mps
}

func TestConformance(t *testing.T) {
	for _, c := range Row().Columns {
		t.Run(c.String(), func(t *testing.T) {
			mptest.Conform(t, mptest.Subject{
				Protocol: "Pacing", Reliable: c.Mode == microproto.ModeSynchronous,
				New: func(int) []microproto.MicroProtocol { return build(t, c, 100*time.Microsecond) },
			})
		})
	}
}

// rig is two ends of a column over a link. Its end 0 sends.
type rig struct {
	*mptest.Pair
	ends [2]*microproto.Composite
}

func newRig(t *testing.T, c microproto.Column, gap time.Duration, length int, f mptest.Faults) *rig {
	r := &rig{}
	for i := range r.ends {
		e, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: mtu}, build(t, c, gap)...)
		require.NoError(t, err)
		require.NoError(t, e.Endpoint().Slot(tag, length))
		r.ends[i] = e
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, f)
	require.NoError(t, r.Open())
	return r
}

func (r *rig) send(t *testing.T, label uint64, data []byte) (err error) {
	require.NoError(t, r.Do(0, func(x *microproto.Exec) { _, err = r.ends[0].Endpoint().Send(x, tag, label, data) }))
	return err
}

func (r *rig) receive(t *testing.T, dst []byte) (a microproto.Arrival, err error) {
	require.NoError(t, r.Do(1, func(x *microproto.Exec) { a, err = r.ends[1].Endpoint().Receive(x, tag, dst, nil) }))
	return a, err
}

// Behind a window the segments leave in gaps, retransmissions included, and nearly as fast as that allows.
func TestGapsBehindWindows(t *testing.T) {
	const gap, messages, length = time.Millisecond, 60, 20 * mtu
	for _, c := range []microproto.Column{
		{Mode: microproto.ModeSynchronous}, {Mode: microproto.ModeSynchronous, Intra: true},
	} {
		for _, loss := range []float64{0, 0.02, 0.1} {
			r := newRig(t, c, gap, length, mptest.Faults{Delay: 5 * time.Millisecond, Loss: loss, Duplicate: loss,
				Reorder: loss})
			var least time.Duration
			var last microproto.Instant
			segments := 0
			r.OnFrame = func(end int, f microproto.Frame) bool {
				if end == 0 && len(f.Data) > mtu/2 {
					if now := r.Clock.Now(); segments == 0 {
						least = time.Hour
						last = now
					} else {
						least = min(least, now.Sub(last))
						last = now
					}
					segments++
				}
				return true
			}
			dst, got, sent := make([]byte, length), 0, 0
			for r.Clock.Now() < microproto.Instant(time.Hour) && got < messages {
				for sent < messages && r.send(t, uint64(sent), bytes.Repeat([]byte{byte(sent)}, length)) == nil {
					sent++
				}
				_, err := r.Run(time.Millisecond)
				require.NoError(t, err)
				for {
					if _, err := r.receive(t, dst); err != nil {
						break
					}
					require.Equal(t, bytes.Repeat([]byte{byte(got)}, length), dst)
					got++
				}
			}
			resent, _ := microproto.CompositeCell[uint64](r.ends[0], microproto.CellRetransmitted)
			took := time.Duration(r.Clock.Now())
			t.Logf("%v, loss %.2f: %d segments, %d sent again, least gap %v, mean %v", c, loss, segments, *resent, least,
				took/time.Duration(segments))
			require.GreaterOrEqual(t, least, gap*9/10)
			require.Equal(t, messages, got)
			if loss == 0 {
				require.Zero(t, *resent, "no time-out passes while segments wait")
				require.Less(t, took, gap*time.Duration(segments)*11/10)
			} else {
				require.NotZero(t, *resent)
			}
		}
	}
}

// At the rate of the link no value that arrives is older than without Pacing: what waits is replaced, where a
// queue behind it would keep it.
func TestNeverOlder(t *testing.T) {
	for _, c := range []microproto.Column{
		{Mode: microproto.ModeAsynchronous}, {Mode: microproto.ModeAsynchronous, Intra: true},
	} {
		for _, parts := range []int{1, 7} {
			length, rate := sizes(t, c, parts)
			for _, period := range []time.Duration{300 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
				f := mptest.Faults{Delay: 2 * time.Millisecond, Rate: rate, Capacity: 40}
				var ages [2][]uint64
				for i, gap := range []time.Duration{0, time.Millisecond} {
					r, dst := newRig(t, c, gap, length, f), make([]byte, length)
					data, label := make([]byte, length), uint64(0)
					for r.Clock.Now() < microproto.Instant(2*time.Second) {
						label++
						for o := 0; o < length; o += 8 {
							binary.BigEndian.PutUint64(data[o:], label)
						}
						require.NoError(t, r.send(t, label, data))
						clear(data) // the memory is the user's again
						until := r.Clock.Now().Add(period)
						_, err := r.Run(period)
						require.NoError(t, err)
						r.Clock.Advance(until)
						a, err := r.receive(t, dst)
						require.NoError(t, err)
						if a.Complete {
							require.Equal(t, a.Label, oldest(dst))
						}
						ages[i] = append(ages[i], a.Label)
					}
					require.True(t, r.ends[0].Counters().Balanced())
				}
				older := 0
				for k := range ages[0] {
					if ages[1][k] < ages[0][k] {
						older++
					}
				}
				n := len(ages[0])
				t.Logf("%v, %d B each %v: last labels %d without, %d with, of %d; older %d", c, length, period, ages[0][n-1],
					ages[1][n-1], n, older)
				require.Zero(t, older)
			}
		}
	}
}

// sizes returns the length of a value of so many full segments, and the rate at which a frame takes a millisecond.
func sizes(t *testing.T, c microproto.Column, parts int) (length int, rate float64) {
	r := newRig(t, c, 0, 8, mptest.Faults{})
	segment, ok := microproto.CompositeCell[int](r.ends[0], microproto.CellSegmentBytes)
	require.True(t, ok)
	return parts * *segment, float64(1000 * (r.ends[0].HeaderBytes() + *segment))
}

func oldest(data []byte) uint64 {
	label := ^uint64(0)
	for o := 0; o+8 <= len(data); o += 8 {
		label = min(label, binary.BigEndian.Uint64(data[o:]))
	}
	return label
}

func TestOptions(t *testing.T) {
	for _, gap := range []int64{-1 << 63, -1, 0, int64(time.Minute) + 1, 1<<63 - 1} {
		_, err := New(microproto.Options{OptionGap: gap})
		require.ErrorContains(t, err, OptionGap)
	}
}

// The example is as short as the guide says.
func TestLength(t *testing.T) {
	text, err := os.ReadFile("pacing.go")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 80)
}
