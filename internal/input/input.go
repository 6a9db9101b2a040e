// Package input reads what a user names: files of a bounded length, and pipes, which may never end.
package input

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadFile reads a regular file of at most limit bytes. It refuses devices and pipes, which may not end. Its
// errors do not contain the name of the file.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, _, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(f, limit)
}

// Open opens a regular file of at most limit bytes. It never waits: a pipe without a writer is refused, too. Its errors
// do not contain the name of the file.
func Open(path string, limit int64) (*os.File, fs.FileInfo, error) {
	return open(path, syscall.O_NONBLOCK, limit, func(m fs.FileMode) error {
		if !m.IsRegular() {
			return errors.New("it is not a regular file")
		}
		return nil
	})
}

// OpenStream opens a regular file of at most limit bytes, or a pipe, for which it waits until a process writes there (see
// Within). It refuses devices. Its errors do not contain the name of the file.
func OpenStream(path string, limit int64) (*os.File, error) {
	f, _, err := open(path, 0, limit, func(m fs.FileMode) error {
		switch {
		case m&fs.ModeDevice != 0:
			return errors.New("it is a device, neither a file nor a pipe")
		case m.IsDir():
			return errors.New("it is a directory")
		}
		return nil
	})
	return f, err
}

func open(path string, flag int, limit int64, check func(fs.FileMode) error) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|flag, 0)
	if err != nil {
		return nil, nil, reason(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = check(info.Mode())
	}
	if err == nil && info.Mode().IsRegular() && info.Size() > limit {
		err = fmt.Errorf("its %d bytes are more than the %d allowed", info.Size(), limit)
	}
	if err != nil {
		f.Close()
		return nil, nil, reason(err)
	}
	return f, info, nil
}

// All reads r to its end, and returns an error if there are more than limit bytes.
func All(r io.Reader, limit int64) ([]byte, error) { return after(nil, r, limit) }

// after is All for what is left of r after a header.
func after(header []byte, r io.Reader, limit int64) ([]byte, error) {
	var all bytes.Buffer
	if f, is := r.(*os.File); is { // the memory of a large file is allocated once
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			all.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
		}
	}
	all.Write(header)
	_, err := all.ReadFrom(io.LimitReader(r, limit+1-int64(len(header))))
	switch {
	case err != nil:
		return nil, reason(err)
	case int64(all.Len()) > limit:
		return nil, fmt.Errorf("it has more than the %d bytes allowed", limit)
	}
	return all.Bytes(), nil
}

// Headed is All for what starts with a header of n bytes. It reads no further if check refuses the header, or the shorter whole
// if there are fewer bytes.
func Headed(r io.Reader, limit int64, n int, check func(header []byte) error) ([]byte, error) {
	header, err := All(io.LimitReader(r, int64(n)), limit)
	if err != nil {
		return nil, err
	}
	if err := check(header); err != nil {
		return nil, err
	}
	return after(header, r, limit)
}

// Line reads the first line of r with its end, or all of r if it has no line. A line has at most limit bytes.
func Line(r io.Reader, limit int) ([]byte, error) {
	line, err := bufio.NewReaderSize(io.LimitReader(r, int64(limit)), limit).ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("its first line has more than the %d bytes allowed", limit)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, reason(err)
	}
	return line, nil
}

// reason removes the path, which the message already contains.
func reason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return missing{}
	}
	if p, is := errors.AsType[*fs.PathError](err); is {
		return p.Err
	}
	return err
}

// missing is fs.ErrNotExist in words of its own.
type missing struct{}

func (missing) Error() string        { return "there is no such file" }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// Within returns the result of a read that may never return, or the cause of the end of ctx if that comes first. The
// read then remains blocked in its goroutine, since no system call ends it.
func Within[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
