// Package npy reads and writes NumPy's .npy arrays. It works on bytes, does no I/O, and validates all
// input, which may come from an untrusted file.
//
// It supports the versions 1.0, 2.0 and 3.0 of numpy.lib.format, in C order and in Fortran order. Entries are bool,
// signed and unsigned integers of 1 to 8 bytes, float32 and float64, in either byte order.
package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// maxAxes bounds the number of axes. Arrays of grids have at most 3.
const maxAxes = 8

// Array is a decoded array. It refers to the bytes it was decoded from and converts entries on access, so
// that a large array is not stored twice. It is safe for concurrent use while these bytes do not change.
type Array struct {
	Shape []int  // slowest axis first, as NumPy prints it
	Type  string // NumPy's name, such as "int16" or "float64"

	read func(entry []byte) float64
	size int // bytes per entry
	data []byte

	transposed bool // the entries are in Fortran order, with the first axis fastest
}

// Len returns the number of entries.
func (a Array) Len() int { return len(a.data) / a.size }

// At returns entry i in C order, with the last axis fastest, whatever the order of the file.
func (a Array) At(i int) float64 {
	if a.transposed {
		i = a.place(i)
	}
	return a.read(a.data[i*a.size : (i+1)*a.size])
}

// place returns the index in Fortran order of entry i in C order.
func (a Array) place(i int) int {
	at, stride := 0, a.Len()
	for k := len(a.Shape) - 1; k >= 0; k-- {
		n := a.Shape[k]
		stride /= n
		at += i % n * stride
		i /= n
	}
	return at
}

// Decode decodes the bytes of a .npy file. Its errors state the defect of the file and, if possible, the remedy.
func Decode(file []byte) (Array, error) {
	text, data, err := split(file)
	if err != nil {
		return Array{}, err
	}
	a, err := describe(text, int64(len(data)))
	a.data = data
	return a, err
}

// describe returns the array of a header, without data, if the number of bytes after the header is that of its entries.
func describe(text string, bytes int64) (Array, error) {
	h, err := parseHeader(text)
	if err != nil {
		return Array{}, err
	}
	var a Array
	if err := a.setType(*h.Descr); err != nil {
		return Array{}, err
	}
	a.transposed = *h.Fortran && len(h.Shape) > 1
	entries := 1
	for _, n := range h.Shape {
		switch {
		case n < 1:
			return Array{}, fmt.Errorf("the array of shape %s is empty", ShapeString(h.Shape))
		case n > uint(math.MaxInt/8/entries):
			return Array{}, fmt.Errorf("the shape %s is too large", ShapeString(h.Shape))
		}
		entries *= int(n)
		a.Shape = append(a.Shape, int(n))
	}
	switch want := int64(entries * a.size); {
	case bytes < want:
		return Array{}, fmt.Errorf("the file is cut short: %s of %s needs %d bytes of data and there are %d",
			ShapeString(a.Shape), a.Type, want, bytes)
	case bytes > want:
		return Array{}, fmt.Errorf("%d bytes follow the %d that %s of %s needs",
			bytes-want, want, ShapeString(a.Shape), a.Type)
	}
	return a, nil
}

// setType sets Type, size and read from NumPy's type description: byte order, kind, bytes.
func (a *Array) setType(descr string) error {
	order, known := orders[descr[:min(1, len(descr))]]
	kind, ok := kinds[descr[min(1, len(descr)):]]
	if !known || !ok {
		return fmt.Errorf("the type %q is not one of bool, int8 to int64, uint8 to uint64, float32, float64; "+
			"save the array with .astype('float64')", descr)
	}
	a.Type, a.size = kind.name, kind.size
	a.read = func(e []byte) float64 { return kind.read(order, e) }
	return nil
}

var orders = map[string]binary.ByteOrder{
	"<": binary.LittleEndian, "|": binary.LittleEndian, "=": binary.LittleEndian, ">": binary.BigEndian,
}

var kinds = map[string]struct {
	name string
	size int
	read func(order binary.ByteOrder, e []byte) float64
}{
	"b1": {"bool", 1, func(_ binary.ByteOrder, e []byte) float64 { return float64(min(e[0], 1)) }},
	"i1": {"int8", 1, func(_ binary.ByteOrder, e []byte) float64 { return float64(int8(e[0])) }},
	"u1": {"uint8", 1, func(_ binary.ByteOrder, e []byte) float64 { return float64(e[0]) }},
	"i2": {"int16", 2, func(o binary.ByteOrder, e []byte) float64 { return float64(int16(o.Uint16(e))) }},
	"u2": {"uint16", 2, func(o binary.ByteOrder, e []byte) float64 { return float64(o.Uint16(e)) }},
	"i4": {"int32", 4, func(o binary.ByteOrder, e []byte) float64 { return float64(int32(o.Uint32(e))) }},
	"u4": {"uint32", 4, func(o binary.ByteOrder, e []byte) float64 { return float64(o.Uint32(e)) }},
	"i8": {"int64", 8, func(o binary.ByteOrder, e []byte) float64 { return float64(int64(o.Uint64(e))) }},
	"u8": {"uint64", 8, func(o binary.ByteOrder, e []byte) float64 { return float64(o.Uint64(e)) }},
	"f4": {"float32", 4, func(o binary.ByteOrder, e []byte) float64 {
		return float64(math.Float32frombits(o.Uint32(e)))
	}},
	"f8": {"float64", 8, func(o binary.ByteOrder, e []byte) float64 { return math.Float64frombits(o.Uint64(e)) }},
}

// ShapeString returns a shape as text, such as "344 × 403".
func ShapeString[N int | uint](shape []N) string {
	if len(shape) == 0 {
		return "a single number"
	}
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(shape), "[]")), " × ")
}
