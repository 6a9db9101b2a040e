package problems

import (
	"github.com/p2pdc/p2pdc/solver/problem"

	_ "embed"
	"errors"
	"strings"
)

// terrain is terrain/jacksboro_fault.npy: its header, then terrainRows rows from
// north to south of terrainColumns int16 each, little endian, metres.
//
//go:embed terrain/jacksboro_fault.npy
var terrain string

const (
	terrainRows, terrainColumns = 344, 403
	terrainHeaderBytes          = 128
	terrainDescription          = "{'descr': '<i2', 'fortran_order': False, 'shape': (344, 403), }"
	terrainWidth, terrainHeight = 30.0, 31.7 // kilometres between the outermost cell centres
)

// jacksboro stretches a membrane over a real terrain, held on its rim. On a grid
// of 401 × 342 points the obstacle is the data itself.
func jacksboro() Builtin {
	return Builtin{
		Name:      "jacksboro",
		Summary:   "2-D membrane over the terrain of the Jacksboro fault (kilometres), held on its rim; --n 401,342 is the data's own grid",
		Reference: "NASA SRTM elevations distributed by the USGS, public domain (problems/terrain)",
		Dimension: 2,
		build: func(p *problem.Problem, _ []float64) error {
			// The file is the project's own: its layout is compared, not parsed.
			if len(terrain) != terrainHeaderBytes+2*terrainRows*terrainColumns ||
				!strings.Contains(terrain[:terrainHeaderBytes], terrainDescription) {
				return errors.New("the embedded terrain is not the array of 344 × 403 int16 that this program was written for")
			}
			metres := terrain[terrainHeaderBytes:]
			p.Hi = problem.Point{terrainWidth, terrainHeight}
			f, err := Raster{
				Lo: p.Lo, Hi: p.Hi,
				Size: [3]int{terrainColumns, terrainRows, 1},
				Flip: [3]bool{1: true},
				Node: func(i int) float64 {
					return 0.001 * float64(int16(uint16(metres[2*i])|uint16(metres[2*i+1])<<8))
				},
			}.Function()
			p.Obstacle, p.Boundary = f, f
			return err
		},
	}
}
