//go:build !linux

package main

import "syscall"

// reno does nothing where congestion control cannot be chosen for a socket.
func reno(_, _ string, _ syscall.RawConn) error { return nil }
