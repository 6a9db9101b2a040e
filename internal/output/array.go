package output

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// writeNPY writes a float64 array [z][y][x] with the boundary: N+2 values along every used axis. Unused
// axes are omitted.
func writeNPY(w io.Writer, g *grid) error {
	if _, err := w.Write(npy.Header(g.shape())); err != nil {
		return err
	}
	return fields(g)[0].write(w, g)
}

// ReadInitial reads an initial iterate for the problem from a .npy file and returns the interior values
// [z][y][x]. The array contains the grid without its boundary (N values along each used axis) or with it
// (N+2, as Write writes it; boundary values are ignored).
func ReadInitial(path string, p *problem.Problem) (u []float64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("initial iterate %s: %w", path, err)
		}
	}()
	file, info, err := input.Open(path, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > 64*int64(p.Points())+1<<20 {
		return nil, fmt.Errorf("its %d bytes are far more than a grid of %d points needs", info.Size(), p.Points())
	}
	array, err := npy.NewReader(bufio.NewReaderSize(file, 1<<16), info.Size())
	if err != nil {
		return nil, reason(err)
	}
	inside, closed := make([]int, 0, 3), make([]int, 0, 3)
	for a := p.Dimension - 1; a >= 0; a-- {
		inside, closed = append(inside, p.N[a]), append(closed, p.N[a]+2)
	}
	boundary := 0 // nodes before the first interior node along a used axis
	switch {
	case slices.Equal(array.Shape, closed):
		boundary = 1
	case !slices.Equal(array.Shape, inside):
		return nil, fmt.Errorf("the array has the shape %s; the grid is %s, or %s with its boundary",
			npy.ShapeString(array.Shape), npy.ShapeString(inside), npy.ShapeString(closed))
	}
	return interior(array, p, boundary)
}

// interior reads the rows of an array and returns the interior values.
func interior(array *npy.Reader, p *problem.Problem, boundary int) ([]float64, error) {
	var skip, width [3]int
	for a := range 3 {
		width[a] = p.N[a]
		if a < p.Dimension {
			skip[a] = boundary
			width[a] += 2 * boundary
		}
	}
	u := make([]float64, 0, p.Points())
	row := make([]float64, width[0])
	for k := range width[2] {
		for j := range width[1] {
			if err := array.Read(row); err != nil {
				return nil, err
			}
			j, k := j-skip[1], k-skip[2]
			if j < 0 || j >= p.N[1] || k < 0 || k >= p.N[2] {
				continue
			}
			values := row[skip[0]:][:p.N[0]]
			for i, v := range values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					point := []int{i + 1, j + 1, k + 1}[:p.Dimension]
					return nil, fmt.Errorf("the value %g at grid point %v is not finite", v, point)
				}
			}
			u = append(u, values...)
		}
	}
	return u, nil
}
