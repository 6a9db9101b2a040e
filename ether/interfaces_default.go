//go:build !linux

package ether

import (
	"errors"
	"io"
)

func watchInterfaces(func(index int, carrier bool)) (io.Closer, error) {
	return nil, errors.ErrUnsupported
}
