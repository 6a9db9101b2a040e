package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch sets the scheduling policy of all threads of this process, and of those they start, to SCHED_BATCH
// (sched(7)): a thread that wakes up does not preempt one that computes. It needs no privilege.
func Batch() error {
	batch := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}
	return EachThread("SCHED_BATCH", func(id int) error { return unix.SchedSetAttr(id, &batch, 0) })
}

// EachThread calls do for all threads of this process. A thread that one of them has started before its call needs
// another round. An error says what failed.
func EachThread(what string, do func(id int) error) error {
	done := map[int]bool{}
	for more := true; more; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("cannot list the threads of this process: %w", err)
		}
		more = false
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			done[id], more = true, true
			if err := do(id); err != nil && err != unix.ESRCH { // the thread has ended
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}

// largeArray is the number of values from which an array gets huge pages.
const largeArray = 1 << 17

// Array returns n zeros. A large array lies in huge pages if the system provides them, so that 2 MiB instead of 4 KiB
// take one page fault and one TLB entry.
func Array(n int) []float64 {
	if n < largeArray {
		return make([]float64, n)
	}
	return hugePages(n)
}

// hugePage is the size of a huge page in bytes.
const hugePage = 2 << 20

// hugePages returns n zeros at the beginning of a huge page. What follows the last whole huge page lies in a huge page,
// too, if it fills half of it.
func hugePages(n int) []float64 {
	whole := 8 * n
	if most := (whole + hugePage - 1) &^ (hugePage - 1); most-whole <= hugePage/2 {
		whole = most
	}
	b := unzeroed(whole + hugePage)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % hugePage)
	b = b[skip : skip+whole : skip+whole]
	pages := b[:whole&^(unix.Getpagesize()-1)]
	_ = unix.Madvise(pages, unix.MADV_HUGEPAGE) // on failure the pages stay small
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		clear(pages)
	}
	clear(b[len(pages):])
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n)
}

// unzeroed returns heap memory of arbitrary content. make would write zeros to memory that was used before, 4 KiB
// page by page; pages that the system zeroes on a fault cost nothing here.
func unzeroed(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// Memory returns the memory of this machine in bytes, 0 if it is unknown.
func Memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return uint64(i.Totalram) * uint64(i.Unit) //nolint:unconvert // the widths differ between architectures
}

// SharedArray returns memory for n values and its file. Another process that inherits the file maps the same memory
// with MapArray. The memory is not on disk, and the system frees it with the last process. It returns nil, nil on
// systems without such memory.
func SharedArray(n int) ([]float64, *os.File, error) {
	fd, err := unix.MemfdCreate("answer", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, nil
	}
	f := os.NewFile(uintptr(fd), "answer")
	if err = f.Truncate(8 * int64(n)); err == nil {
		var a []float64
		if a, err = MapArray(f, n); err == nil {
			return a, f, nil
		}
	}
	f.Close()
	return nil, nil, fmt.Errorf("cannot share memory for %d values: %w", n, err)
}

// Populate takes the page faults of writing to a at once, except those of its first page: one by one they take several
// times as long. It does nothing where the system cannot do that (Linux before 5.14).
func Populate(a []float64) {
	size := unix.Getpagesize()
	if 8*len(a) < 2*size {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), 8*len(a))
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % uintptr(size))
	_ = unix.Madvise(b[skip:], unix.MADV_POPULATE_WRITE)
}

// MapArray maps a file of exactly n values until the process ends.
func MapArray(f *os.File, n int) ([]float64, error) {
	i, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n < 1 || i.Size() != 8*int64(n) {
		return nil, fmt.Errorf("shared memory has %d bytes for %d values", i.Size(), n)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 8*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // on failure both processes take a page fault per 4 KiB
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n), nil
}
