//go:build !linux

package main

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/measure"
)

func vethHosts() (hosts, error) {
	return hosts{}, fmt.Errorf("%w: network namespaces need Linux", measure.ErrUnavailable)
}
