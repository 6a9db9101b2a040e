//go:build unix

package verbs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Allocate maps n zero bytes at a page boundary outside Go's heap, for registration.
func Allocate(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("verbs: cannot map %d bytes: %w", n, err)
	}
	return b, nil
}

// Free unmaps memory of Allocate. Nothing may use it any more.
func Free(b []byte) error { return unix.Munmap(b) }
