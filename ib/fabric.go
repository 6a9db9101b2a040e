package ib

import (
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
)

// Fabric joins software adapters, for tests, benchmarks and runs within one process. They
// follow the rules of real adapters, but measurements on them say nothing about real ones.
type Fabric struct {
	software *software.Fabric
	mu       sync.Mutex
	adapters map[string]*software.Adapter
}

// NewSoftwareFabric returns a fabric without adapters: an InfiniBand subnet with path MTU 4096.
func NewSoftwareFabric() *Fabric { return newFabric(software.Config{}) }

func newFabric(c software.Config) *Fabric {
	return &Fabric{software: software.NewFabric(c), adapters: map[string]*software.Adapter{}}
}

// Add adds an adapter with one port. A link opens it by its name (Config.Device).
func (f *Fabric) Add(name string) error {
	a, err := f.software.Add(name)
	if err != nil {
		return fmt.Errorf("ib: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.adapters[name] = a
	return nil
}

// SetPort connects or disconnects the cable of an adapter's port.
func (f *Fabric) SetPort(name string, up bool) error {
	a, err := f.adapter(name)
	if err != nil {
		return err
	}
	return a.SetPort(1, up)
}

// Remove removes an adapter.
func (f *Fabric) Remove(name string) error {
	a, err := f.adapter(name)
	if err != nil {
		return err
	}
	a.Remove()
	return nil
}

func (f *Fabric) adapter(name string) (*software.Adapter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.adapters[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("ib: %w: %s", verbs.ErrNoDevice, name)
}

// provider returns the provider of the link's adapter.
func (c *Config) provider() (verbs.Provider, error) {
	if c.Fabric != nil {
		return c.Fabric.software, nil
	}
	return hostProvider()
}
