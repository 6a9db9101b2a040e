//go:build !linux

package pin

import "errors"

var errLinux = errors.New("threads are bound to processors on Linux only")

// Allowed returns an error.
func Allowed() ([]Processor, error) { return nil, errLinux }

// Claim is empty.
type Claim struct{}

// Bind returns an error.
func Bind([]int) (Claim, error) { return Claim{}, errLinux }

// Release does nothing.
func (Claim) Release() {}
