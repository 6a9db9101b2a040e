package path

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	us := func(all ...int) (out []time.Duration) {
		for _, x := range all {
			out = append(out, time.Duration(x)*time.Microsecond)
		}
		return out
	}
	for what, c := range map[string]struct {
		base, rail []time.Duration
		faster     bool
		says       string
	}{
		"faster":            {us(26, 25, 27), us(20, 19, 18), true, "stream is faster than ether here: 64 KiB one way in 18 µs, ether 25"},
		"slower":            {us(20, 19, 18), us(26, 25, 27), false, "stream is not faster by a tenth than ether here: 64 KiB one way in 25 µs, ether 18"},
		"not by the margin": {us(100, 100, 100), us(91, 91, 91), false, "not faster by a tenth"},
		"by the margin":     {us(100, 100, 100), us(90, 90, 90), true, "is faster"},
		"once only":         {us(100, 100, 100), us(50, 100, 100), false, "not faster"},
		"too few":           {us(100, 100), us(50, 50), false, "was not compared with ether: the path is too slow"},
		"none":              {nil, us(50, 50, 50), false, "stream was not compared with ether"},
		"late once each":    {us(100, 100, 9000, 101), us(80, 81, 82, 9000), true, "is faster"},
	} {
		t.Run(what, func(t *testing.T) {
			got := Compare(64<<10, c.base, c.rail)
			require.Equal(t, c.faster, got.Faster)
			require.Contains(t, got.Describe(Ethernet, Stream), c.says)
		})
	}
	failed := Comparison{Failed: true}
	require.Contains(t, failed.Describe(Ethernet, Stream), "stream was not compared with ether: messages did not pass in time")
}
