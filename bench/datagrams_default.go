//go:build !linux

package main

import (
	"fmt"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
)

func newDatagrams(*endpoint, func(string)) (twonode.Channel, error) {
	return nil, fmt.Errorf("%w: plain datagrams are measured on Linux only", measure.ErrUnavailable)
}
