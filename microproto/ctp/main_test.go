package ctp

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"
)

// noProgress is the virtual time after which a run with random faults counts as stuck.
// The longest of thousands took five minutes.
const noProgress = 30 * time.Minute

// TestMain reduces the draws of each property test to 40; make stress draws thousands. Shrinking a failed run may take
// many runs of several seconds, so it stops after five seconds unless -rapid.shrinktime is set.
func TestMain(m *testing.M) {
	if err := errors.Join(flag.Set("rapid.shrinktime", "5s"), flag.Set("rapid.checks", "40")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
