//go:build !unix

package verbs

// Allocate returns n zero bytes.
func Allocate(n int) ([]byte, error) { return make([]byte, n), nil }

// Free releases memory of Allocate.
func Free([]byte) error { return nil }
