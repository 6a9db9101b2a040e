package npy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxHeader bounds the header of a file that is read in parts. NumPy's own bound is 10000 bytes.
const maxHeader = 1 << 16

// Reader reads the entries of a .npy file in memory order, with the last axis fastest, so that no array need be in
// memory as a whole.
type Reader struct {
	Shape []int  // slowest axis first
	Type  string // NumPy's name

	array Array
	data  io.Reader
	part  []byte
}

// NewReader reads the header of a file of size bytes. Its errors are those of Decode.
func NewReader(file io.Reader, size int64) (*Reader, error) {
	head, err := io.ReadAll(io.LimitReader(file, maxHeader))
	if err != nil {
		return nil, err
	}
	text, data, err := split(head)
	if err != nil {
		return nil, err
	}
	a, err := describe(text, size-int64(len(head)-len(data)))
	if err != nil {
		return nil, err
	}
	return &Reader{Shape: a.Shape, Type: a.Type, array: a, data: io.MultiReader(bytes.NewReader(data), file)}, nil
}

// Read fills dst with the next entries.
func (r *Reader) Read(dst []float64) error {
	size := r.array.size
	if len(r.part) < len(dst)*size {
		r.part = make([]byte, len(dst)*size)
	}
	part := r.part[:len(dst)*size]
	_, err := io.ReadFull(r.data, part)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ended while it was read")
	case err != nil:
		return fmt.Errorf("the file cannot be read: %w", err)
	}
	for i := range dst {
		dst[i] = r.array.read(part[i*size : (i+1)*size])
	}
	return nil
}
