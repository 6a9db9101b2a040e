// Package host reads the resources of this machine and allocates large arrays. It opens no device.
package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// line returns the first line of a small file, "" if it cannot be read.
func line(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

// CPU returns the name of the processor.
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

// Sysctl returns a number below /proc/sys, −1 if it is unknown.
func Sysctl(name string) int64 {
	v, err := strconv.ParseInt(line("/proc/sys/"+name), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// status returns a size of /proc/self/status in bytes, 0 if it is unknown.
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

// PeakBytes returns the peak of the resident memory of this process, 0 if it is unknown.
func PeakBytes() int64 { return status("VmHWM") }

// ResidentBytes returns the resident memory of this process, 0 if it is unknown.
func ResidentBytes() int64 { return status("VmRSS") }
