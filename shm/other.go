//go:build !linux

package shm

import "errors"

var errSystem = errors.New("shm: shared memory between processes needs Linux")

// Usable returns nil if this host can share memory between processes, or what it lacks.
func Usable() error { return errSystem }

func newSharedOutbox(int) (outbox, error)     { return outbox{}, errSystem }
func identify() (hostIdentity, uint32, error) { return hostIdentity{}, 0, errSystem }
func listen(*Link) (meeting, string, error)   { return nil, "", errSystem }
