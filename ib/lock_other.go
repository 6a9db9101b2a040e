//go:build !linux

package ib

// lockLimit: nothing is pinned here.
func lockLimit() LockLimit { return LockLimit{Bytes: -1} }
