//go:build race

package obstacle_test

// raceFactor is less than the factor by which the race detector slows relaxing down.
const raceFactor = 3
