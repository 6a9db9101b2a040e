// Package suite is the contract of package verbs as tests: one call runs it over a
// provider. What a stack of real adapters does not show, or shows otherwise, a Rig says.
package suite

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Rig is what the suite runs on: two ends, which may be one device looped back.
type Rig struct {
	Provider verbs.Provider
	Devices  [2]string
	Port     int // of both
	GIDIndex int
	MTU      int // bytes, of the paths (0: 1024, or the port's if that is less)

	// Exact wants the statuses and the bounds of the specification where stacks differ:
	// a queue of unsignaled requests stays full, an overlong message is a length error.
	Exact bool
	// SetPort pulls or plugs the wire of an end; nil where the test cannot.
	SetPort func(end int, up bool)
	// Lose drops the packets, counted from 0 from now on over both ends, for which it
	// returns true; acknowledgements are not counted. nil takes it back. Lose itself is
	// nil where nothing can be dropped.
	Lose func(func(packet int) bool)
	// Open counts what is open: regions, pairs and the rest. nil where it is not known.
	Open func() int64
}

// Run runs all of it.
func Run(t *testing.T, r Rig) {
	if r.Port == 0 {
		r.Port = 1
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, Rig)
	}{
		{"Device", testDevice},
		{"Busy", testBusy},
		{"Regions", testRegions},
		{"Limits", testLimits},
		{"Channel", testChannel},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("", func(t *testing.T) { c.run(t, r) })
			r.closed(t)
		})
	}
	for _, tr := range []verbs.Transport{verbs.RC, verbs.UC} {
		t.Run(tr.String(), func(t *testing.T) {
			for _, c := range []struct {
				name string
				run  func(*testing.T, Rig, verbs.Transport)
			}{
				{"Transitions", testTransitions},
				{"States", testStates},
				{"Send", testSend},
				{"Gather", testGather},
				{"Write", testWrite},
				{"Inline", testInline},
				{"Order", testOrder},
				{"Unsignaled", testUnsignaled},
				{"QueueFull", testQueueFull},
				{"Reuse", testReuse},
				{"OneQueue", testOneQueue},
				{"Duplex", testDuplex},
				{"NoReceive", testNoReceive},
				{"Keys", testKeys},
				{"BrokenSender", testBrokenSender},
				{"LocalProtection", testLocalProtection},
				{"ReceiveProtection", testReceiveProtection},
				{"TooLong", testTooLong},
				{"Flush", testFlush},
				{"Reset", testReset},
				{"WrongNumber", testWrongNumber},
				{"WrongPSN", testWrongPSN},
				{"PathMTU", testPathMTU},
				{"Loss", testLoss},
				{"Port", testPort},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Run("", func(t *testing.T) { c.run(t, r, tr) })
					r.closed(t)
				})
			}
		})
	}
}
