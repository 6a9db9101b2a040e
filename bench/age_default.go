//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/measure"
)

func age(context.Context, *measure.Run) error {
	return fmt.Errorf("%w: the network laboratory needs Linux", measure.ErrUnavailable)
}

func runFlow() {}
