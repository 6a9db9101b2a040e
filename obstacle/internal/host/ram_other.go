//go:build !linux

package host

// Memory is how many bytes this machine has; 0: not known.
func Memory() uint64 { return 0 }
