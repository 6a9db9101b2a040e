//go:build !linux

package main

import "time"

// coreTime is the wall clock where threads have none of their own.
func coreTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
