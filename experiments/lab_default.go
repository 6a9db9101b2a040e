//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

var errNoLab = fmt.Errorf("%w: the network laboratory needs Linux", measure.ErrUnavailable)

func (*localCase) calibrateInLab(context.Context) (*cluster.Description, error) { return nil, errNoLab }

func (*localCase) runInLab(context.Context, *measure.Run, string, uint64) (measure.Solution, error) {
	return measure.Solution{}, errNoLab
}

func goodput(context.Context, *measure.Run) error { return errNoLab }

func shares(context.Context, *measure.Run) error { return errNoLab }

func cables(context.Context, *measure.Run) error { return errNoLab }
