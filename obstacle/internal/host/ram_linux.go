package host

import "golang.org/x/sys/unix"

// Memory is how many bytes this machine has; 0: not known.
func Memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return uint64(i.Totalram) * uint64(i.Unit) //nolint:unconvert // of other widths on other machines
}
