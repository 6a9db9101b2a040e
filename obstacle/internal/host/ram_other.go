//go:build !linux

package host

// Memory returns the memory of this machine in bytes, 0 if it is unknown.
func Memory() uint64 { return 0 }
