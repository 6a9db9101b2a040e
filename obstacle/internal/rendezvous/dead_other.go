//go:build !linux

package rendezvous

import (
	"net"
	"time"
)

// closeWhenDead does nothing: the timeouts of the system apply.
func closeWhenDead(net.Conn, time.Duration) error { return nil }

// owing reports that it is not known.
func owing(net.Conn) (quiet, rtt time.Duration) { return 0, 0 }

// hostSilent reports that the silence is not known.
func hostSilent(net.Conn) (time.Duration, bool) { return 0, false }
