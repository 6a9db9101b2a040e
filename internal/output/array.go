package output

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"

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
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file")
	case info.Size() > 64*int64(p.Points())+1<<20:
		return nil, fmt.Errorf("its %d bytes are far more than a grid of %d points needs", info.Size(), p.Points())
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, reason(err)
	}
	array, err := npy.Decode(file)
	if err != nil {
		return nil, err
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

func interior(array npy.Array, p *problem.Problem, boundary int) ([]float64, error) {
	var skip, width [3]int
	for a := range 3 {
		width[a] = p.N[a]
		if a < p.Dimension {
			skip[a] = boundary
			width[a] += 2 * boundary
		}
	}
	u := make([]float64, 0, p.Points())
	for k := range p.N[2] {
		for j := range p.N[1] {
			row := ((k+skip[2])*width[1]+j+skip[1])*width[0] + skip[0]
			for i := range p.N[0] {
				v := array.At(row + i)
				if math.IsNaN(v) || math.IsInf(v, 0) {
					point := []int{i + 1, j + 1, k + 1}[:p.Dimension]
					return nil, fmt.Errorf("the value %g at grid point %v is not finite", v, point)
				}
				u = append(u, v)
			}
		}
	}
	return u, nil
}
