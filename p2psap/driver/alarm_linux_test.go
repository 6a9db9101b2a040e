package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel's timer is set to the duration asked for, not to whole milliseconds as the runtime's timers are.
func TestAlarmIsPrecise(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.close()
	for _, d := range []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, 1500 * time.Microsecond, time.Hour} {
		a.set(d)
		var left unix.ItimerSpec
		require.NoError(t, unix.TimerfdGettime(a.fd, &left))
		require.LessOrEqual(t, time.Duration(left.Value.Nano()), d)
		if d < time.Second {
			require.NoError(t, a.wait())
		} else {
			require.Positive(t, left.Value.Nano())
		}
	}
}
