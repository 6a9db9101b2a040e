package mptest

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

func TestClockRunsInOrderOfInstantThenCreation(t *testing.T) {
	c := NewClock()
	var ran []int
	note := func(n int) func() { return func() { ran = append(ran, n) } }
	c.At(20, note(3))
	c.At(10, note(1))
	c.At(20, func() { note(4)(); c.At(5, note(5)) })
	c.After(10, note(2))
	c.Advance(15) // not past the next one
	require.Equal(t, microproto.Instant(0), c.Now())
	for c.Step() {
	}
	require.Equal(t, []int{1, 2, 3, 4, 5}, ran)
	require.Equal(t, microproto.Instant(20), c.Now())
	require.Equal(t, microproto.Never, c.Next())
}

// blast sends numbered frames, one each microsecond, and returns the numbers that arrive, in
// order.
func blast(l *Link, clock *Clock, n int, arrived *[]uint32) {
	l.Receive(1, func(f microproto.Frame) {
		*arrived = append(*arrived, binary.BigEndian.Uint32(f.Data))
		f.Release()
	})
	for i := range n {
		clock.At(microproto.Instant(i*1000), func() {
			l.Send(0, microproto.Frame{Data: binary.BigEndian.AppendUint32(nil, uint32(i))})
		})
	}
	for clock.Step() {
	}
}

func TestLinkFaults(t *testing.T) {
	const n = 10000
	near := func(t *testing.T, share float64, got uint64) { require.InDelta(t, share*n, float64(got), 0.02*n) }
	for _, c := range []struct {
		name  string
		f     Faults
		check func(t *testing.T, got []uint32, s LinkStats)
	}{
		{"none", Faults{Delay: time.Millisecond}, func(t *testing.T, got []uint32, s LinkStats) {
			require.Len(t, got, n)
			require.IsIncreasing(t, got)
		}},
		{"jitter keeps the order", Faults{Delay: time.Millisecond, Jitter: time.Millisecond},
			func(t *testing.T, got []uint32, s LinkStats) {
				require.IsIncreasing(t, got)
			}},
		{"loss", Faults{Loss: 0.3}, func(t *testing.T, got []uint32, s LinkStats) {
			near(t, 0.3, s.Lost)
			require.Len(t, got, n-int(s.Lost))
		}},
		{"duplicates", Faults{Duplicate: 0.2}, func(t *testing.T, got []uint32, s LinkStats) {
			near(t, 0.2, s.Duplicated)
			require.Len(t, got, n+int(s.Duplicated))
		}},
		{"reordering", Faults{Delay: time.Millisecond, Reorder: 0.1}, func(t *testing.T, got []uint32, s LinkStats) {
			near(t, 0.1, s.Reordered)
			require.Len(t, got, n)
			swaps := 0
			for i := 1; i < n; i++ {
				if got[i] < got[i-1] {
					swaps++
				}
			}
			require.Greater(t, swaps, n/20)
		}},
		{"corruption", Faults{Corrupt: 0.1}, func(t *testing.T, got []uint32, s LinkStats) {
			near(t, 0.1, s.Corrupted)
			wrong := uint64(0)
			for i, v := range got {
				if v != uint32(i) {
					wrong++
				}
			}
			require.Equal(t, s.Corrupted, wrong)
		}},
		{"capacity", Faults{Delay: 100 * time.Microsecond, Capacity: 10},
			func(t *testing.T, got []uint32, s LinkStats) {
				require.Greater(t, s.Overflowed, uint64(n/2))
				require.Equal(t, uint64(n), s.Arrived+s.Overflowed)
			}},
		{"rate", Faults{Rate: 1e6, Capacity: n}, func(t *testing.T, got []uint32, s LinkStats) {
			require.IsIncreasing(t, got)
			require.Len(t, got, n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var first, second []uint32
			clock := NewClock()
			l := NewLink(clock, 42, c.f)
			blast(l, clock, n, &first)
			c.check(t, first, l.Stats(0))
			require.Zero(t, l.InFlight())
			clock = NewClock()
			blast(NewLink(clock, 42, c.f), clock, n, &second)
			require.Equal(t, first, second, "one seed, one run")
		})
	}
}

func TestPartition(t *testing.T) {
	clock := NewClock()
	l := NewLink(clock, 1, Faults{})
	var got []uint32
	l.Partition(0, true)
	blast(l, clock, 10, &got)
	require.Empty(t, got)
	require.EqualValues(t, 10, l.Stats(0).Cut)
	l.Partition(0, false)
	blast(l, clock, 10, &got)
	require.Len(t, got, 10)
}

func TestPairStopsWhereTimeDoesNotPass(t *testing.T) {
	c, err := microproto.NewComposite(microproto.Config{Name: "spin", MTU: 100}, spin{})
	require.NoError(t, err)
	d, err := microproto.NewComposite(microproto.Config{Name: "still", MTU: 100})
	require.NoError(t, err)
	p := NewPair(c, d, 1, Faults{})
	require.NoError(t, p.Open())
	_, err = p.Run(time.Second)
	require.ErrorContains(t, err, "time does not pass")
}

type spin struct{}

var spinAgain = microproto.NewEvent[*spin]("spin.again")

func (spin) Name() string { return "spin" }
func (spin) Attach(b *microproto.Binder) error {
	microproto.Bind(b, microproto.OpenSession, 0,
		func(x *exec, _ struct{}) { microproto.RaiseAfter(x, spinAgain, 0, new(spin)) })
	microproto.Bind(b, spinAgain, 0, func(x *exec, s *spin) { microproto.RaiseAfter(x, spinAgain, 0, s) })
	return nil
}
