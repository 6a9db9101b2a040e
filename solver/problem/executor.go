package problem

import "github.com/p2pdc/p2pdc/internal/kernel"

// Tiling configures several sweeps in one pass over memory, for a peer with the whole grid. Results do not
// depend on it.
type Tiling = kernel.Tiling

// Executor runs f(0) … f(n−1), possibly on several threads. Results do not depend on it.
type Executor = kernel.Executor

// Sequential is the Executor that runs on the caller's goroutine.
type Sequential = kernel.Sequential
