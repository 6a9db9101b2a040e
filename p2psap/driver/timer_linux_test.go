package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// left returns the time until the alarm's timer expires; 0: it has expired, or it is not set.
func left(t *testing.T, a *alarm) time.Duration {
	var s unix.ItimerSpec
	require.NoError(t, unix.TimerfdGettime(a.timer.fd, &s))
	return time.Duration(s.Value.Nano())
}

// The kernel's timer is set to the duration asked for, not to whole milliseconds as the runtime's timers are.
func TestAlarmIsPrecise(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.close()
	for _, d := range []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, 1500 * time.Microsecond, time.Hour} {
		a.set(d)
		require.LessOrEqual(t, left(t, a), d)
		if d < time.Second {
			require.NoError(t, a.wait())
		} else {
			require.Positive(t, left(t, a))
		}
	}
}

// A time that is set while the alarm rings does not take the ring back. After wait it can be set again.
func TestRingIsNotLost(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.close()
	for range 100 {
		a.ring()
		a.set(time.Hour)
		require.LessOrEqual(t, left(t, a), time.Duration(1))
		require.NoError(t, a.wait())
		a.set(time.Hour)
		require.Greater(t, left(t, a), time.Minute)
	}
}
