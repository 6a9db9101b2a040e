//go:build !linux

package main

import (
	"errors"

	"github.com/p2pdc/p2pdc/bench/internal/duel"
)

func newDatagrams(string, string, func(string)) (duel.Channel, error) {
	return nil, errors.New("plain datagrams are measured on Linux only")
}
