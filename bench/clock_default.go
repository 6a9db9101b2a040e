//go:build !linux

package main

import "time"

// coreTime is the wall clock where threads have none of their own.
func coreTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// processorTime is the clock on the wall, in seconds.
func processorTime() float64 { return float64(time.Now().UnixNano()) / 1e9 }
