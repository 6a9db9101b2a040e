//go:build race

package runner_test

// The race detector's own work allocates.
const racing = true
