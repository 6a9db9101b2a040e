//go:build !linux

package main

import (
	"context"
	"errors"
	"time"
)

// probed is what a link of the lab takes beyond what it emulates.
type probed struct{ frame, late time.Duration }

var errNoLab = errors.New("runs in the lab: only Linux has network namespaces")

// labProbe needs network namespaces, which only Linux has.
func labProbe() (probed, error) { return probed{}, errNoLab }

// labRun needs them too.
func (b *bench) labRun(context.Context, *homeCase, *rehearsed, string, uint64) error { return errNoLab }
