package cli

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/page"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

func built(t *testing.T, name string, n ...int) *problem.Problem {
	t.Helper()
	spec, err := file.Open(nil, name, nil)
	require.NoError(t, err)
	p, err := spec.BuildValid(n)
	require.NoError(t, err)
	return p
}

// No part of a large grid that is shown has more points than may be sent, and each is a plane where it was asked for.
func TestShownPointsAreFew(t *testing.T) {
	for _, n := range [][3]int{{1, 1, 1}, {5, 1, 1}, {100000, 1, 1}, {3000, 3000, 1}, {1000, 1000, 1000}, {256, 257, 40}} {
		dimension := 3
		for dimension > 1 && n[dimension-1] == 1 {
			dimension--
		}
		for axis := range 3 {
			for _, w := range []page.Wanted{{Whole: true}, {Axis: axis, Plane: n[axis] / 2}, {Axis: axis, Plane: 1 << 40}} {
				s := sampleOf(n, dimension, w)
				require.True(t, s.Valid(n), "%v %+v %+v", n, w, s)
				if !w.Whole {
					require.Equal(t, 1, s.Size[axis])
					require.Equal(t, min(w.Plane, n[axis]-1), s.First[axis])
				}
			}
		}
	}
}

// Requests for planes that do not exist are one, so that they do not keep others waiting.
func TestPlanesBeyondTheGridAreOne(t *testing.T) {
	f := newFields()
	live := f.begin(0, built(t, "membrane", 8, 8, 8))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for plane := range 2 * maxWanted {
		_, err := f.Values(ctx, page.Wanted{Axis: 2, Plane: 1<<62 + plane})
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, []page.Wanted{{Axis: 2, Plane: 7}}, live.wanted)
}

// The peers are asked only while somebody waits, and what they send reaches him. After the run the answer is shown.
func TestFieldsOfARun(t *testing.T) {
	p := built(t, "membrane", 8, 8, 8)
	f := newFields()
	plane := page.Wanted{Axis: 2, Plane: 3}
	_, err := f.Values(t.Context(), plane)
	require.ErrorIs(t, err, page.ErrNoValues)
	live := f.begin(0, p)
	_, due := live.Due()
	require.False(t, due, "nobody looks")
	got := make(chan *page.Values)
	go func() {
		v, _ := f.Values(t.Context(), plane)
		got <- v
	}()
	await.Until(t, func() bool {
		s, due := live.Due()
		if due {
			u := make([]float64, s.Points())
			u[0] = math.NaN()
			live.Take(s, u, launch.Progress{})
		}
		return due
	}, "the request")
	v := <-got
	require.Equal(t, [3]int{8, 8, 1}, v.Size)
	require.Equal(t, 3, v.First[2])
	require.Len(t, v.Lower, 64)
	_, due = live.Due()
	require.False(t, due, "nobody looks any more")

	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = f.Values(gone, plane)
	require.ErrorIs(t, err, context.Canceled)

	u := make([]float64, p.Points())
	for i := range u {
		u[i] = float64(i)
	}
	f.keep(0, p, u, 2)
	v, err = f.Values(t.Context(), page.Wanted{Axis: 0, Plane: 2})
	require.NoError(t, err)
	require.Equal(t, [3]int{1, 8, 8}, v.Size)
	require.Equal(t, []float64{2, 10, 18}, v.U[:3])
	require.Equal(t, u, f.all()[0].U, "a small grid is kept as a whole")
	f.begin(1, p)
	f.keep(1, p, nil, 0)
	v, err = f.Values(t.Context(), plane)
	require.NoError(t, err)
	require.Equal(t, [3]int{8, 8, 8}, v.Size, "of a run before, the sample is left")
	_, err = f.Values(t.Context(), page.Wanted{Run: 1})
	require.ErrorIs(t, err, page.ErrNoValues)
}
