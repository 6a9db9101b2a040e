// Package blocks copies the boxes of a partition into and out of the array of the whole grid, in pieces, so that a box
// in transfer needs no second copy. Arrays are [z][y][x], x fastest; bytes are little-endian float64.
package blocks

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Bytes returns the length of a box in bytes.
func Bytes(b problem.Box) int64 { return 8 * int64(b.Points()) }

// Put writes data, the bytes of box b from offset on, into the whole array u of n points. offset and len(data) must be
// multiples of 8.
func Put(u []float64, n [3]int, b problem.Box, offset int64, data []byte) error {
	return walk(u, n, b, offset, len(data), func(row []float64, at int) {
		Decode(row, data[8*at:])
	})
}

// Get fills data with the bytes of box b from offset on.
func Get(data []byte, u []float64, n [3]int, b problem.Box, offset int64) error {
	return walk(u, n, b, offset, len(data), func(row []float64, at int) {
		Encode(data[8*at:], row)
	})
}

// Slice returns the part of the whole array u of n points that box b fills, or nil if the part is not contiguous.
func Slice(u []float64, n [3]int, b problem.Box) []float64 {
	size := b.Size()
	if b.Points() > size[0] && (size[0] != n[0] || b.Points() > size[0]*size[1] && size[1] != n[1]) {
		return nil
	}
	at := b.Lo[0] + n[0]*(b.Lo[1]+n[1]*b.Lo[2])
	return u[at:][:b.Points():b.Points()]
}

// Copy writes the values of box b into the whole array u of n points.
func Copy(u []float64, n [3]int, b problem.Box, values []float64) {
	_ = walk(u, n, b, 0, int(Bytes(b)), func(row []float64, at int) { copy(row, values[at:]) })
}

// MaxAbs returns the largest magnitude of a value of box b of the whole array u of n points, NaN if one is NaN.
func MaxAbs(u []float64, n [3]int, b problem.Box) float64 {
	top := 0.0
	_ = walk(u, n, b, 0, int(Bytes(b)), func(row []float64, _ int) { top = problem.MaxOrNaN(top, kernel.MaxAbs(row)) })
	return top
}

// Extract returns the values of box b of the whole array u of n points.
func Extract(u []float64, n [3]int, b problem.Box) []float64 {
	out := make([]float64, b.Points())
	_ = walk(u, n, b, 0, int(Bytes(b)), func(row []float64, at int) { copy(out[at:], row) })
	return out
}

// Encode writes values to data as bytes.
func Encode(data []byte, values []float64) {
	for i, v := range values {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
	}
}

// Append appends what Encode wrote to values.
func Append(values []float64, data []byte) []float64 {
	at, n := len(values), len(data)/8
	values = slices.Grow(values, n)[:at+n]
	Decode(values[at:], data)
	return values
}

// Decode reads what Encode wrote.
func Decode(values []float64, data []byte) {
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
}

// walk calls visit for every contiguous row of u that holds bytes [offset, offset+length) of the box; at is the
// number of values before the row.
func walk(u []float64, n [3]int, b problem.Box, offset int64, length int, visit func(row []float64, at int)) error {
	if offset < 0 || offset%8 != 0 || length%8 != 0 || offset+int64(length) > Bytes(b) {
		return fmt.Errorf("bytes %d to %d are not within a box of %d bytes", offset, offset+int64(length), Bytes(b))
	}
	size := b.Size()
	first, count := int(offset/8), length/8
	for done := 0; done < count; {
		p := first + done
		x, y, z := p%size[0], p/size[0]%size[1], p/(size[0]*size[1])
		run := min(size[0]-x, count-done)
		at := (b.Lo[0] + x) + n[0]*((b.Lo[1]+y)+n[1]*(b.Lo[2]+z))
		visit(u[at:at+run], done)
		done += run
	}
	return nil
}
