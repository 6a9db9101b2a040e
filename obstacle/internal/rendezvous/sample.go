package rendezvous

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Sample selects every stride-th point of a box: Size points along each axis, from First on.
type Sample struct {
	First  [3]int `json:"first"`
	Stride [3]int `json:"stride"`
	Size   [3]int `json:"size"`
}

// MaxSample bounds the points of a sample.
const MaxSample = 1 << 16

// Valid reports whether the points lie in a grid and are few.
func (s *Sample) Valid(n [3]int) bool {
	points := 1
	for a := range 3 {
		if s.First[a] < 0 || s.Stride[a] < 1 || s.Size[a] < 1 || s.Size[a] > MaxSample || s.Stride[a] > n[a] ||
			s.First[a] > n[a] || s.First[a]+(s.Size[a]-1)*s.Stride[a] >= n[a] {
			return false
		}
		points *= s.Size[a]
		if points > MaxSample {
			return false
		}
	}
	return true
}

// Points returns the number of points.
func (s *Sample) Points() int { return s.Size[0] * s.Size[1] * s.Size[2] }

// In returns which points lie in a box, as a box of their indices in the sample.
func (s *Sample) In(b problem.Box) (out problem.Box) {
	for a := range 3 {
		out.Lo[a] = max(0, (b.Lo[a]-s.First[a]+s.Stride[a]-1)/s.Stride[a])
		if out.Hi[a] = min(s.Size[a], (b.Hi[a]-1-s.First[a])/s.Stride[a]+1); b.Hi[a] <= s.First[a] {
			out.Hi[a] = 0
		}
	}
	if out.Empty() {
		return problem.Box{}
	}
	return out
}

// Read returns the values of the points that lie in a box, [z][y][x]. values writes a part of the box, in coordinates
// of the grid.
func (s *Sample) Read(b problem.Box, values func(dst []float64, part problem.Box)) []float64 {
	in := s.In(b)
	if in.Empty() {
		return nil
	}
	out := make([]float64, 0, in.Points())
	at := func(a, i int) int { return s.First[a] + i*s.Stride[a] }
	// The points of one plane are read from the smallest box that contains them.
	part := problem.Box{}
	for a := range 2 {
		part.Lo[a], part.Hi[a] = at(a, in.Lo[a]), at(a, in.Hi[a]-1)+1
	}
	wide := part.Hi[0] - part.Lo[0]
	plane := make([]float64, wide*(part.Hi[1]-part.Lo[1]))
	for z := in.Lo[2]; z < in.Hi[2]; z++ {
		part.Lo[2], part.Hi[2] = at(2, z), at(2, z)+1
		values(plane, part)
		for y := in.Lo[1]; y < in.Hi[1]; y++ {
			row := plane[(at(1, y)-part.Lo[1])*wide:]
			for x := in.Lo[0]; x < in.Hi[0]; x++ {
				out = append(out, row[at(0, x)-part.Lo[0]])
			}
		}
	}
	return out
}

// Place writes the values of the points that lie in a box, as Read returns them, to u, which holds all points [z][y][x].
func (s *Sample) Place(u []float64, b problem.Box, values []float64) {
	in := s.In(b)
	if len(values) != in.Points() {
		return
	}
	for z, at := in.Lo[2], 0; z < in.Hi[2]; z++ {
		for y := in.Lo[1]; y < in.Hi[1]; y++ {
			at += copy(u[(z*s.Size[1]+y)*s.Size[0]+in.Lo[0]:][:in.Hi[0]-in.Lo[0]], values[at:])
		}
	}
}

// Unknown returns values for all points that are NaN.
func (s *Sample) Unknown() []float64 {
	u := make([]float64, s.Points())
	for i := range u {
		u[i] = math.NaN()
	}
	return u
}
