//go:build !linux

package ib

// lockLimit returns no limit: no memory is pinned here.
func lockLimit() LockLimit { return LockLimit{Bytes: -1} }
