//go:build !linux

package stream

import (
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
)

var errSystem = errors.New("stream: this link needs Linux")

// Usable returns nil if this system has what the link needs, or what it lacks.
func Usable() error { return errSystem }

// Link is one end of the connections of a process.
type Link struct {
	microproto.Link
	count counters
}

// Open returns an error: the link needs Linux.
func Open(Config) (*Link, error) { return nil, errSystem }
