//go:build !linux

package flow

// Main does nothing: flows need Linux.
func Main() {}
