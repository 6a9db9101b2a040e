package main

import (
	"os"
	"syscall"
)

// maxResident is the peak resident memory of a process that has ended, in bytes; 0:
// not known.
func maxResident(p *os.ProcessState) float64 {
	use, known := p.SysUsage().(*syscall.Rusage)
	if !known {
		return 0
	}
	return float64(use.Maxrss) * 1024
}
