package ib

import (
	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/libibverbs"
)

// hostProvider returns the provider of the host's adapters.
func hostProvider() (verbs.Provider, error) { return libibverbs.New(), nil }
