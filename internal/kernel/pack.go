package kernel

import "fmt"

// Pack writes the points of b, which may include ghosts, from padded array u to dst as little-endian float64s in
// [z][y][x] order. It returns the number of bytes written. dst must hold 8·b.Points() bytes.
func (l Layout) Pack(dst []byte, u []float64, b Box) int {
	l.checkFace(len(dst), u, b)
	n, m := 0, b.Hi[0]-b.Lo[0]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i := l.Index(b.Lo[0], y, z)
			PutFloats(dst[n:], u[i:i+m])
			n += 8 * m
		}
	}
	return n
}

// Unpack is the inverse of Pack: it reads 8·b.Points() bytes from src into the points of b of u and
// returns the number of bytes read.
func (l Layout) Unpack(u []float64, src []byte, b Box) int {
	l.checkFace(len(src), u, b)
	n, m := 0, b.Hi[0]-b.Lo[0]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i := l.Index(b.Lo[0], y, z)
			ReadFloats(u[i:i+m], src[n:])
			n += 8 * m
		}
	}
	return n
}

func (l Layout) checkFace(bytes int, u []float64, b Box) {
	if !b.Empty() && !l.holds(b, 1) {
		panic(fmt.Sprintf("kernel: box %v lies outside the block of %v points and its ghosts", b, l.N))
	}
	if len(u) < l.Len() || bytes < 8*b.Points() {
		panic(fmt.Sprintf("kernel: %d bytes and an array of %d values; box of %d points, layout of %d values",
			bytes, len(u), b.Points(), l.Len()))
	}
}
