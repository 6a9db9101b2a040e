package ib

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// hostProvider is that of the host's adapters.
func hostProvider() (verbs.Provider, error) {
	return nil, fmt.Errorf("ib: %w", verbs.ErrNoLibrary)
}
