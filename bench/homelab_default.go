//go:build !linux

package main

import (
	"context"
	"errors"
)

// labRun needs network namespaces, which only Linux has.
func (b *bench) labRun(context.Context, *rehearsed, string, string, uint64) error {
	return errors.New("runs in the lab: only Linux has network namespaces")
}
