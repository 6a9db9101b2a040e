package progress

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The time left is what the parts took before, where that is known, and otherwise the mean of the parts before.
func TestPartsLeft(t *testing.T) {
	p := Parts{Expected: []time.Duration{10 * time.Second, 0, 30 * time.Second}}
	p.Begin(0, 0, "sweep")
	require.Negative(t, p.left(time.Second), "the second part's time is unknown")
	require.Zero(t, p.done(time.Second))
	p.Begin(20*time.Second, 1, "kernels")
	require.Equal(t, 45*time.Second, p.left(25*time.Second), "15 s of this part, as long as the first one, and 30 s")
	require.InDelta(t, 25.0/70, p.done(25*time.Second), 1e-12)
	p.Begin(40*time.Second, 2, "dispatch")
	require.Equal(t, 30*time.Second, p.left(40*time.Second))
	require.Zero(t, p.left(time.Hour))
	require.Equal(t, 1.0, p.done(time.Hour))
}

func TestPartsText(t *testing.T) {
	p := Parts{Expected: []time.Duration{0, time.Minute}}
	p.Begin(0, 0, "sweep")
	require.Equal(t, " part 1 of 2: sweep  1.0 s, left ?", p.text(time.Second))
	p.Round(2, 9)
	require.Equal(t, " part 1 of 2: sweep  round 2 of 9  1.0 s, left ?", p.text(time.Second))
	p.Begin(20*time.Second, 1, "kernels")
	require.Equal(t, " part 2 of 2: kernels  30 s, left 50 s", p.text(30*time.Second))
}

func TestPartsBarGoesAway(t *testing.T) {
	var out bytes.Buffer
	bars := NewSlowBars(&out, time.Second)
	b := bars.Parts([]time.Duration{0})
	b.Begin(0, "sweep")
	b.Round(1, 3)
	b.Remove()
	bars.Close()
}
