package cli

import (
	"fmt"
	"os"
	"testing"
)

// TestMain refuses to be a peer. The tests of this package start no processes; one that does by mistake would have each
// peer run all tests, which start peers again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "peer" {
		fmt.Fprintln(os.Stderr, "the tests of this package start no peers: test package obstacle instead")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
