package ctp

import (
	"flag"
	"os"
	"testing"
	"time"
)

// noProgress is the virtual time after which a run with random faults counts as stuck.
// The longest of thousands took five minutes.
const noProgress = 30 * time.Minute

// Shrinking a failed run may take many runs of several seconds, so it stops after five seconds
// unless -rapid.shrinktime is set.
func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.shrinktime"); f != nil {
		f.DefValue = "5s"
		_ = f.Value.Set(f.DefValue)
	}
	flag.Parse()
	os.Exit(m.Run())
}
