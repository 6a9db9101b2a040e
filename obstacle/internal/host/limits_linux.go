package host

import "golang.org/x/sys/unix"

func limits() []resource {
	return []resource{
		{"memlock", unix.RLIMIT_MEMLOCK, "bytes of memory that may be locked: registered buffers of an RDMA adapter"},
		{"nofile", unix.RLIMIT_NOFILE, "open files and sockets of a process"},
		{"nproc", unix.RLIMIT_NPROC, "processes and threads of a user"},
	}
}
