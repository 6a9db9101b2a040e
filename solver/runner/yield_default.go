//go:build !linux

package runner

import "runtime"

func yield() { runtime.Gosched() }
