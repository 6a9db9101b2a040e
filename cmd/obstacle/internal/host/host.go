// Package host reads what this machine offers to a run. It opens no device and
// changes nothing.
package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Device is a port of an RDMA adapter.
type Device struct {
	Name      string `json:"name"`
	Port      int    `json:"port"`
	State     string `json:"state"`      // "ACTIVE"
	LinkLayer string `json:"link_layer"` // "InfiniBand" or "Ethernet"
	Rate      string `json:"rate"`       // "100 Gb/sec (4X EDR)"
}

// RDMA lists the ports of RDMA adapters below root, which is /sys/class/infiniband
// on a running system; none when there is no such folder.
func RDMA(root string) []Device {
	devices, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var out []Device
	for _, d := range devices {
		ports, err := os.ReadDir(filepath.Join(root, d.Name(), "ports"))
		if err != nil {
			continue
		}
		for _, p := range ports {
			n, err := strconv.Atoi(p.Name())
			if err != nil {
				continue
			}
			at := filepath.Join(root, d.Name(), "ports", p.Name())
			state := line(filepath.Join(at, "state")) // "4: ACTIVE"
			if _, name, found := strings.Cut(state, ": "); found {
				state = name
			}
			out = append(out, Device{d.Name(), n, state, line(filepath.Join(at, "link_layer")), line(filepath.Join(at, "rate"))})
		}
	}
	return out
}

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
