// The tests of this package are the contract of package verbs, over both providers. A rig
// describes where a stack of real adapters differs or cannot be tested.
package verbs_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// rig is the pair of ends that the suite runs on. Both may be one device looped back.
type rig struct {
	Provider verbs.Provider
	Devices  [2]string
	Port     int // of both
	GIDIndex int
	MTU      int // bytes, of the paths (0: 1024, or the port's if that is less)

	// Exact requires the statuses and bounds of the specification where stacks differ: a queue
	// of unsignaled requests stays full, an overlong message is a length error.
	Exact bool
	// SetPort disconnects or connects the cable of an end, or is nil.
	SetPort func(end int, up bool)
	// SetLoss drops the packets for which lost returns true, or none if lost is nil. Packets of
	// both ends are counted from 0, without acknowledgements. SetLoss itself may be nil.
	SetLoss func(lost func(packet int) bool)
	// Open counts the open objects, or is nil.
	Open func() int64
}

// runSuite runs all tests.
func runSuite(t *testing.T, r rig) {
	r.Port = max(r.Port, 1)
	for _, c := range []struct {
		name string
		run  func(*testing.T, rig)
	}{
		{"Device", testDevice},
		{"Busy", testBusy},
		{"Regions", testRegions},
		{"Limits", testLimits},
		{"Channel", testChannel},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("", func(t *testing.T) { c.run(t, r) })
			r.requireClosed(t)
		})
	}
	for _, tr := range []verbs.Transport{verbs.RC, verbs.UC} {
		t.Run(tr.String(), func(t *testing.T) {
			for _, c := range []struct {
				name string
				run  func(*testing.T, rig, verbs.Transport)
			}{
				{"Transitions", testTransitions},
				{"States", testStates},
				{"Send", testSend},
				{"Gather", testGather},
				{"Write", testWrite},
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
					r.requireClosed(t)
				})
			}
		})
	}
}
