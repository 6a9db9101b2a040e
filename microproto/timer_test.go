package microproto_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var alarm = microproto.NewEvent[*int]("test.alarm")

// TestTimersModel compares random timers, cancellations and advances with a sorted list.
func TestTimersModel(t *testing.T) {
	type entry struct {
		at    microproto.Instant
		seq   int
		id    microproto.TimerID
		value int
	}
	rapid.Check(t, func(rt *rapid.T) {
		var fired []int
		config := microproto.Config{Name: "timers", MTU: 100, Limits: microproto.Limits{Timers: 20}}
		c, err := microproto.NewComposite(config,
			of("p", func(b *binder) {
				microproto.Bind(b, alarm, 0, func(_ *exec, v *int) { fired = append(fired, *v) })
			}))
		require.NoError(rt, err)
		require.NoError(rt, c.Open(0))
		var model []entry
		var stale []microproto.TimerID
		now, seq := microproto.Instant(0), 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				d := time.Duration(rapid.IntRange(-3, 12).Draw(rt, "delay"))
				seq++
				v := seq
				require.NoError(rt, c.Do(now, func(x *exec) {
					id := microproto.RaiseAfter(x, alarm, d, &v)
					if len(model) == 20 {
						require.Zero(rt, id, "past the bound")
						return
					}
					require.NotZero(rt, id)
					require.NotContains(rt, stale, id)
					model = append(model, entry{now.Add(max(d, 0)), seq, id, v})
				}))
			case 2:
				require.NoError(rt, c.Do(now, func(x *exec) {
					if len(stale) > 0 {
						id := rapid.SampledFrom(stale).Draw(rt, "stale")
						require.False(rt, x.Cancel(id), "a stale id cancels nothing")
					}
					if len(model) > 0 {
						i := rapid.IntRange(0, len(model)-1).Draw(rt, "cancel")
						require.True(rt, x.Cancel(model[i].id))
						stale = append(stale, model[i].id)
						model = slices.Delete(model, i, i+1)
					}
				}))
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(rt, "pass")))
				fired = nil
				require.NoError(rt, c.Advance(now))
				slices.SortFunc(model, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), a.seq-b.seq) })
				var want []int
				for len(model) > 0 && model[0].at <= now {
					want = append(want, model[0].value)
					stale = append(stale, model[0].id)
					model = model[1:]
				}
				require.Equal(rt, want, fired)
			}
			deadline := microproto.Never
			for _, e := range model {
				deadline = min(deadline, e.at)
			}
			require.Equal(rt, deadline, c.Deadline())
			require.Equal(rt, len(model), c.Counters().Timers)
		}
	})
}

func TestATimerSetByATimerWaitsForTheNextAdvance(t *testing.T) {
	n := 0
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, alarm, 0, func(x *exec, v *int) {
			n++
			microproto.RaiseAfter(x, alarm, 0, v)
		})
	}))
	v := 0
	do(t, c, func(x *exec) { microproto.RaiseAfter(x, alarm, 0, &v) })
	require.NoError(t, c.Advance(0))
	require.Equal(t, 1, n, "no endless loop in one call")
	require.Equal(t, microproto.Instant(0), c.Deadline())
	require.NoError(t, c.Advance(0))
	require.Equal(t, 2, n)
}

func TestATimerWhoseMessageHasEndedIsSkipped(t *testing.T) {
	n := 0
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, microproto.SegmentTimeout, 0, func(*exec, *message) { n++ })
	}))
	do(t, c, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		microproto.RaiseAfter(x, microproto.SegmentTimeout, 5, m)
		microproto.Enqueue(x, microproto.SegmentTimeout, m)
		x.Done(m)
		again, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.Same(t, m, again, "its memory is used again, under another identity")
		microproto.RaiseAfter(x, microproto.SegmentTimeout, 6, again)
	})
	require.Zero(t, n, "the enqueued raise was skipped")
	require.NoError(t, c.Advance(10))
	require.Equal(t, 1, n)
}

func TestTimeDoesNotRunBackwards(t *testing.T) {
	c := composite(t, microproto.Config{}, of("p", func(*binder) {}))
	require.NoError(t, c.Advance(100))
	require.NoError(t, c.Do(50, func(x *exec) { require.Equal(t, microproto.Instant(100), x.Now()) }))
	require.Equal(t, microproto.Never, microproto.Instant(5).Add(1<<63-1), "no overflow")
	require.Equal(t, 5*time.Nanosecond, microproto.Instant(7).Sub(2))
}
