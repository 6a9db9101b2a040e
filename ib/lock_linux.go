package ib

import "golang.org/x/sys/unix"

// lockLimit reads RLIMIT_MEMLOCK and whether this process is exempt from it: the kernel's
// ib_umem_get does not check processes with CAP_IPC_LOCK.
func lockLimit() LockLimit {
	l := LockLimit{Bytes: -1}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) == nil && r.Cur < 1<<62 {
		l.Bytes = int64(r.Cur)
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) == nil {
		l.Exempt = d[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
	}
	return l
}
