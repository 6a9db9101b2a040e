//go:build !linux

package host

import (
	"errors"
	"os"
)

// SharedArray returns nil, nil: this system has no such memory.
func SharedArray(int) ([]float64, *os.File, error) { return nil, nil, nil }

// MapArray returns an error.
func MapArray(*os.File, int) ([]float64, error) {
	return nil, errors.New("this system has no shared memory")
}
