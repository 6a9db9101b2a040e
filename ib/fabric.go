package ib

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/libibverbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
)

// Fabric joins software adapters, for tests, benchmarks and runs within one process. They
// follow the rules of real adapters, but measurements on them say nothing about real ones.
type Fabric struct{ software *software.Fabric }

// NewSoftwareFabric returns a fabric without adapters: an InfiniBand subnet with path MTU 4096.
func NewSoftwareFabric() *Fabric { return newFabric(software.Config{}) }

func newFabric(c software.Config) *Fabric { return &Fabric{software.NewFabric(c)} }

// Add adds an adapter with one port. A link opens it by its name (Config.Device).
func (f *Fabric) Add(name string) error {
	if _, err := f.software.Add(name); err != nil {
		return fmt.Errorf("ib: %w", err)
	}
	return nil
}

// SetPort connects or disconnects the cable of an adapter's port.
func (f *Fabric) SetPort(name string, up bool) error {
	a, err := f.software.Adapter(name)
	if err != nil {
		return fmt.Errorf("ib: %w", err)
	}
	a.SetPort(up)
	return nil
}

// Remove removes an adapter.
func (f *Fabric) Remove(name string) error {
	a, err := f.software.Adapter(name)
	if err != nil {
		return fmt.Errorf("ib: %w", err)
	}
	a.Remove()
	return nil
}

// provider returns the provider of the link's adapter.
func (c *Config) provider() verbs.Provider {
	if c.Fabric != nil {
		return c.Fabric.software
	}
	return libibverbs.New()
}
