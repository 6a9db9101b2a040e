// Package host reads the resources of this machine and allocates large arrays. It opens no device.
package host

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// field returns the first value of a key in a file of lines "key: value", "" if there is none.
func field(file, key string) string {
	b, _ := os.ReadFile(file)
	for l := range strings.Lines(string(b)) {
		if k, value, found := strings.Cut(l, ":"); found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// CPU returns the name of the processor.
func CPU() string { return cmp.Or(field("/proc/cpuinfo", "model name"), runtime.GOARCH) }

// Sysctl returns a number below /proc/sys, −1 if it is unknown.
func Sysctl(name string) int64 {
	b, _ := os.ReadFile("/proc/sys/" + name)
	v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// PeakBytes returns the peak of the resident memory of this process, 0 if it is unknown.
func PeakBytes() int64 {
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/self/status", "VmHWM"), " kB"), 10, 64)
	return kib << 10
}

// Limit is a resource limit of this process.
type Limit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"` // −1 if there is none
	Hard int64  `json:"hard"`
	What string `json:"what"`
}
