//go:build !linux

package host

// Batch does nothing: only Linux has SCHED_BATCH.
func Batch() error { return nil }
