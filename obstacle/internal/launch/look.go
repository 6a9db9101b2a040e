package launch

import (
	"fmt"
	"time"
)

// The launcher may stand still itself: its user stops it, its machine is paused. Then what the
// peers sent meanwhile lies unread, and by the clock all of them would be silent. So the
// launcher counts silence and patience in looks, of which it takes one every lookEvery while
// it runs and none while it stands still; between two looks it reads what has come.

// maxLook bounds the time between two looks.
const maxLook = 100 * time.Millisecond

// lookEvery is the time between two looks of a run with this peer timeout.
func lookEvery(timeout time.Duration) time.Duration {
	return min(max(timeout/20, 5*time.Millisecond), maxLook)
}

// looks is how many looks d takes at least.
func (r *run) looks(d time.Duration) int { return int(d/r.every) + 2 }

// look counts a look at a peer and reports whether more than most of them have passed since
// its last message. A peer that the launcher keeps waiting cannot send one.
func (m *member) look(held bool, most int) bool {
	if m.quiet++; held {
		m.quiet = 0
	}
	return m.quiet > most
}

// silence describes a peer that look has found silent.
func (m *member) silence(timeout time.Duration) string {
	return fmt.Sprintf("%s has been silent for more than %v (--peer-timeout)", m, timeout)
}

// endsWithin waits until done is closed, for no longer than d of the time that this process
// runs, and reports whether it was.
func endsWithin(d time.Duration, done <-chan struct{}) bool {
	look := time.NewTicker(maxLook)
	defer look.Stop()
	for left := int(d / maxLook); ; left-- {
		select {
		case <-done:
			return true
		default:
		}
		if left < 0 {
			return false
		}
		select {
		case <-done:
		case <-look.C:
		}
	}
}
