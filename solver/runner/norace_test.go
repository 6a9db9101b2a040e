//go:build !race

package runner_test

const racing = false
