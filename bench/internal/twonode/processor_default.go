//go:build !unix

package twonode

import "time"

// usage returns 0: it is not known here.
func usage() (processor time.Duration, sleeps int64) { return 0, 0 }
