package main

import "time"

// The link between two peers in the network laboratory, and their grid.
const (
	labN     = 32
	labRate  = 25_000_000 // bytes a second
	labDelay = time.Millisecond
	labQueue = 256 << 10
	labMTU   = 1500
	labTime  = 2 * time.Minute // bound of a run
)
