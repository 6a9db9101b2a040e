//go:build !linux

package main

import "errors"

func wire() (place, error) {
	return place{}, errors.New("network namespaces are Linux's")
}
