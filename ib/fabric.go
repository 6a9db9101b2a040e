package ib

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Fabric joins adapters made of software, for tests, benchmarks and runs within one
// process. It obeys the rules of real ones.
type Fabric struct {
	provider verbs.Provider
}

// provider is who makes the link's adapter.
func (c *Config) provider() (verbs.Provider, error) {
	if c.Fabric != nil {
		return c.Fabric.provider, nil
	}
	return nil, fmt.Errorf("ib: %w", verbs.ErrNoLibrary)
}
