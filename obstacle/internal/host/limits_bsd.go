//go:build unix && !linux

package host

import "golang.org/x/sys/unix"

type resource struct {
	name     string
	resource int
	what     string
}

func limits() []resource {
	return []resource{{"nofile", unix.RLIMIT_NOFILE, "open files and sockets of a process"}}
}
