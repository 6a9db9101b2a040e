//go:build !linux

package ib

import "io/fs"

// adapters lists none: only Linux shows them in a file system.
func adapters(fs.FS) []adapter { return nil }

// lockLimit returns no limit: no memory is pinned here.
func lockLimit() LockLimit { return LockLimit{Bytes: -1} }
