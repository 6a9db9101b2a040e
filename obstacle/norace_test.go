//go:build !race

package obstacle_test

const raceFactor = 1
