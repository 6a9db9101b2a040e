// Package host reads what this machine offers to a run. It opens no device and
// changes nothing.
package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// line is the first line of a small file; empty when it cannot be read.
func line(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

// CPU is the processor's name as the kernel has it.
func CPU() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for l := range strings.Lines(string(b)) {
		if key, value, found := strings.Cut(l, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Sysctl reads a number below /proc/sys; -1: not known.
func Sysctl(name string) int64 {
	v, err := strconv.ParseInt(line("/proc/sys/"+name), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// status is a line of /proc/self/status in bytes; 0: not known.
func status(key string) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(b)) {
		if rest, found := strings.CutPrefix(l, key+":"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// PeakBytes is the most memory that this process has had resident; 0: not known.
func PeakBytes() int64 { return status("VmHWM") }

// ResidentBytes is what it has resident now; 0: not known.
func ResidentBytes() int64 { return status("VmRSS") }
