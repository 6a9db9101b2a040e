package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A step is either held or abandoned, even if both happen at once.
func TestStepIsHeldOrAbandoned(t *testing.T) {
	s := &stepping{allowed: make(chan member.Hold, 1)}
	require.True(t, s.allow(member.Hold{Number: 1}))
	s.abandon()
	h, is := <-s.allowed
	require.True(t, is)
	require.Equal(t, 1, h.Number)
	s = &stepping{allowed: make(chan member.Hold, 1)}
	s.abandon()
	require.False(t, s.allow(member.Hold{}))
	_, is = <-s.allowed
	require.False(t, is)
}

// The values of a dropped step give their memory to the newest, but for those of the assignment.
func TestMemoryOfHeldEnds(t *testing.T) {
	var s ends
	w, box := &work{}, problem.Box{Hi: [3]int{2, 1, 1}}
	w.config.After, w.config.Initial = 3, []float64{30, 30}
	s.begin(w, false, box)
	hold := func(step int, drop bool) {
		s.hold(iterate.StepResult{Step: step}, box, func(u []float64) { u[0], u[1] = float64(10*step), float64(10*step) }, drop)
	}
	hold(4, false)
	first := &s.held[1].u[0]
	hold(5, true)
	require.Equal(t, []float64{30, 30}, w.config.Initial)
	hold(6, true)
	require.Len(t, s.held, 2)
	require.Equal(t, []float64{50, 50}, s.held[0].u)
	require.Equal(t, []float64{60, 60}, s.held[1].u)
	require.Same(t, first, &s.held[1].u[0])
}
