//go:build !linux

package rendezvous

import (
	"net"
	"time"
)

// closeWhenDead does nothing: the timeouts of the system apply.
func closeWhenDead(net.Conn, time.Duration) error { return nil }

// carriesNothing reports that it is not known.
func carriesNothing(net.Conn, time.Duration) bool { return false }

// hostSilent reports that the silence is not known.
func hostSilent(net.Conn) (time.Duration, bool) { return 0, false }
