//go:build !linux || !(amd64 || arm64) || nolibibverbs

package libibverbs

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// New returns a provider without devices, whose errors give the reason.
func New() verbs.Provider { return none{} }

type none struct{}

func (none) Name() string { return "libibverbs" }

func (none) Devices() ([]string, error) { return nil, absent() }

func (none) Open(string) (verbs.Device, error) { return nil, absent() }

func absent() error {
	return fmt.Errorf("%w: this program was built without it (build it for Linux on amd64 or arm64, "+
		"without the tag nolibibverbs)", verbs.ErrNoLibrary)
}
