package solver

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the draws of each property test, which solve whole problems; make stress draws thousands.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
