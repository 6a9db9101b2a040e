//go:build !linux

package host

// Batch does nothing: only Linux tells batch work apart.
func Batch() error { return nil }
