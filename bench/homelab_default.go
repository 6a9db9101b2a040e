//go:build !linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

var errNoLab = errors.New("runs in the lab: only Linux has network namespaces")

// labModel needs network namespaces, which only Linux has.
func (*homeCase) labModel(context.Context) (*cluster.Description, error) { return nil, errNoLab }

// labRun needs them too.
func (*bench) labRun(context.Context, *homeCase, *rehearsed, string, uint64) error { return errNoLab }

// ownTime is not asked for where the system does not count the processors' time.
func ownTime() time.Duration { return 0 }
