//go:build !linux

package main

import (
	"context"
	"fmt"
	"syscall"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
)

func age(context.Context, *measure.Run) error {
	return fmt.Errorf("%w: the network laboratory needs Linux", measure.ErrUnavailable)
}

func newDatagrams(*endpoint, func(string)) (twonode.Channel, error) {
	return nil, fmt.Errorf("%w: plain datagrams are measured on Linux only", measure.ErrUnavailable)
}

// reno does nothing where congestion control cannot be chosen for a socket.
func reno(_, _ string, _ syscall.RawConn) error { return nil }

func vethHosts() (hosts, error) {
	return hosts{}, fmt.Errorf("%w: network namespaces need Linux", measure.ErrUnavailable)
}

func silentHost(_ context.Context, r *measure.Run, _ string) error {
	r.Skip("a host is silent", fmt.Errorf("%w: network namespaces need Linux", measure.ErrUnavailable))
	return nil
}
