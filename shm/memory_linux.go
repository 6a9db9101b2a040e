package shm

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// seals of an outbox: its owner keeps the writable mapping that it has, nobody gets another, and the size
// is fixed.
const seals = unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Usable returns nil if this host can share memory between processes, or what it lacks.
func Usable() error {
	o, err := newSharedOutbox(pageBytes)
	if err != nil {
		return err
	}
	o.free()
	_, _, err = identify()
	return err
}

// newSharedOutbox returns sealed memory that only this mapping can write.
func newSharedOutbox(n int) (outbox, error) {
	fd, err := unix.MemfdCreate("p2pdc", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("p2pdc", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return outbox{}, fmt.Errorf("shm: cannot create anonymous shared memory (memfd_create): %w", err)
	}
	o := outbox{file: os.NewFile(uintptr(fd), "outbox")}
	// Without allocation, a full memory file system would end the process at the first write.
	if err := unix.Fallocate(fd, 0, 0, int64(n)); err != nil {
		o.free()
		return outbox{}, fmt.Errorf("shm: cannot allocate %d bytes of shared memory (fallocate): %w", n, err)
	}
	o.bytes, err = unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		o.free()
		return outbox{}, fmt.Errorf("shm: cannot map %d bytes of shared memory: %w", n, err)
	}
	o.unmap = unix.Munmap
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		o.free()
		return outbox{}, fmt.Errorf("shm: cannot seal shared memory (F_SEAL_FUTURE_WRITE needs Linux 5.1): %w", err)
	}
	return o, nil
}

// mapRemote maps the other end's outbox of n bytes. It refuses memory that the other end could shrink,
// leave unallocated or let others write, before this process depends on it.
func mapRemote(file *os.File, n int) (outbox, error) {
	fd := int(file.Fd())
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return outbox{}, fmt.Errorf("cannot examine the other end's memory: %w", err)
	}
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	switch {
	case err != nil:
		return outbox{}, fmt.Errorf("the other end's memory cannot be sealed: %w", err)
	case got&seals != seals:
		return outbox{}, fmt.Errorf("the other end's memory has the seals %#x, without %#x", got, seals&^got)
	case stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size != int64(n):
		return outbox{}, fmt.Errorf("the other end's memory has %d bytes instead of %d", stat.Size, n)
	case stat.Blocks*512 < int64(n):
		return outbox{}, fmt.Errorf("only %d of %d bytes of the other end's memory are allocated", stat.Blocks*512, n)
	}
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return outbox{}, fmt.Errorf("cannot map %d bytes of the other end's memory: %w", n, err)
	}
	return outbox{bytes: b, unmap: unix.Munmap}, nil
}

// identify returns the identities of this host and of the user of this process.
func identify() (h hostIdentity, user uint32, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil && len(boot) < len(h.Boot) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return h, 0, fmt.Errorf("shm: cannot identify this host by its boot id: %w", err)
	}
	copy(h.Boot[:], boot)
	var space unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &space); err != nil {
		return h, 0, fmt.Errorf("shm: cannot identify the network namespace: %w", err)
	}
	h.Namespace = [2]uint64{uint64(space.Dev), space.Ino}
	return h, uint32(os.Geteuid()), nil
}

// sendByte sends a byte over a socket and never waits: a full socket holds enough of them.
func sendByte(fd uintptr) { _ = unix.Send(int(fd), wakeByte[:], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }

var wakeByte = [1]byte{1}
