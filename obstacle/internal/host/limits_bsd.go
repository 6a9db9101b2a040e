//go:build unix && !linux

package host

import "golang.org/x/sys/unix"

func limits() []resource {
	return []resource{{"nofile", unix.RLIMIT_NOFILE, "open files and sockets of a process"}}
}
