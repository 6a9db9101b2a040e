package host

import "golang.org/x/sys/unix"

// Memory returns the memory of this machine in bytes, 0 if it is unknown.
func Memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return uint64(i.Totalram) * uint64(i.Unit) //nolint:unconvert // the widths differ between architectures
}
