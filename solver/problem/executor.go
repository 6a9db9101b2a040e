package problem

import "github.com/p2pdc/p2pdc/internal/kernel"

// Tiling says how a peer that has the whole grid does several sweeps in one pass over
// memory. Results do not depend on it.
type Tiling = kernel.Tiling

// Executor runs f(0) … f(n−1), possibly on several threads. Results do not depend
// on it.
type Executor = kernel.Executor

// Sequential is the Executor on the caller's goroutine.
type Sequential = kernel.Sequential
