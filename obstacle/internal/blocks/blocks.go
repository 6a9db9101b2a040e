// Package blocks puts the boxes of a partition into the array of the whole grid
// and takes them out, piece by piece, so that a box on its way needs no second
// copy. Arrays are [z][y][x], x fastest; bytes are little endian float64.
package blocks

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver"
)

// Bytes is the length of a box as bytes.
func Bytes(b solver.Box) int64 { return 8 * int64(b.Points()) }

// Put writes data, which is box b's bytes from offset on, into the whole array u
// of n points. offset and len(data) are multiples of 8.
func Put(u []float64, n [3]int, b solver.Box, offset int64, data []byte) error {
	return walk(u, n, b, offset, len(data), func(row []float64, at int) {
		for i := range row {
			row[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*(at+i):]))
		}
	})
}

// Get fills data with box b's bytes from offset on.
func Get(data []byte, u []float64, n [3]int, b solver.Box, offset int64) error {
	return walk(u, n, b, offset, len(data), func(row []float64, at int) {
		for i, v := range row {
			binary.LittleEndian.PutUint64(data[8*(at+i):], math.Float64bits(v))
		}
	})
}

// Within is the part of the whole array u of n points that box b fills; nil where that is
// not one piece.
func Within(u []float64, n [3]int, b solver.Box) []float64 {
	size := b.Size()
	if b.Points() > size[0] && (size[0] != n[0] || b.Points() > size[0]*size[1] && size[1] != n[1]) {
		return nil
	}
	at := b.Lo[0] + n[0]*(b.Lo[1]+n[1]*b.Lo[2])
	return u[at:][:b.Points():b.Points()]
}

// Place writes the values of box b into the whole array u of n points.
func Place(u []float64, n [3]int, b solver.Box, values []float64) {
	size := b.Size()
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			at := b.Lo[0] + n[0]*(y+n[1]*z)
			values = values[copy(u[at:at+size[0]], values):]
		}
	}
}

// Encode writes values, a box or a part of one, as bytes.
func Encode(data []byte, values []float64) {
	for i, v := range values {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
	}
}

// Decode reads what Encode wrote.
func Decode(values []float64, data []byte) {
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
}

// walk calls visit for every run of points of u that box bytes [offset,
// offset+length) fall on; at counts the floats before it.
func walk(u []float64, n [3]int, b solver.Box, offset int64, length int, visit func(row []float64, at int)) error {
	if offset < 0 || offset%8 != 0 || length%8 != 0 || offset+int64(length) > Bytes(b) {
		return fmt.Errorf("bytes %d to %d are no part of a box of %d bytes", offset, offset+int64(length), Bytes(b))
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
