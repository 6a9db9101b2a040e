package npy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// HeaderBytes bounds the header of a file that is read in parts. NumPy's own bound is 10000 bytes.
const HeaderBytes = 1 << 16

// Describe returns the array of a file of size bytes, without its entries, by the first HeaderBytes of the file. Its errors
// are those of Decode.
func Describe(head []byte, size int64) (Array, error) {
	a, _, err := describeFile(head, size)
	return a, err
}

// describeFile is Describe, and returns the bytes of head that follow the header.
func describeFile(head []byte, size int64) (a Array, data []byte, err error) {
	text, data, err := split(head)
	if err != nil {
		return Array{}, nil, err
	}
	a, err = describe(text, size-int64(len(head)-len(data)))
	return a, data, err
}

// Reader reads the entries of a .npy file in C order, with the last axis fastest. An array in C order need not be in
// memory as a whole; one in Fortran order is.
type Reader struct {
	Shape []int  // slowest axis first
	Type  string // NumPy's name

	array Array
	data  io.Reader
	part  []byte
	next  int // index of the next entry, for arrays in Fortran order
}

// NewReader reads the header of a file of size bytes. Its errors are those of Decode.
func NewReader(file io.Reader, size int64) (*Reader, error) {
	head, err := io.ReadAll(io.LimitReader(file, HeaderBytes))
	if err != nil {
		return nil, err
	}
	a, data, err := describeFile(head, size)
	if err != nil {
		return nil, err
	}
	r := &Reader{Shape: a.Shape, Type: a.Type, array: a, data: io.MultiReader(bytes.NewReader(data), file)}
	if a.transposed {
		r.array.data = make([]byte, size-int64(len(head)-len(data)))
		return r, r.fill(r.array.data)
	}
	return r, nil
}

// Read fills dst with the next entries.
func (r *Reader) Read(dst []float64) error {
	if r.array.transposed {
		if r.next+len(dst) > r.array.Len() {
			return errEarly
		}
		for i := range dst {
			dst[i] = r.array.At(r.next + i)
		}
		r.next += len(dst)
		return nil
	}
	size := r.array.size
	if len(r.part) < len(dst)*size {
		r.part = make([]byte, len(dst)*size)
	}
	part := r.part[:len(dst)*size]
	if err := r.fill(part); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = r.array.read(part[i*size : (i+1)*size])
	}
	return nil
}

var errEarly = errors.New("the file ended while it was read")

// fill reads the next bytes of the data.
func (r *Reader) fill(part []byte) error {
	_, err := io.ReadFull(r.data, part)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errEarly
	case err != nil:
		return fmt.Errorf("the file cannot be read: %w", err)
	}
	return nil
}
