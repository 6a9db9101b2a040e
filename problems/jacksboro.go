package problems

import (
	"github.com/p2pdc/p2pdc/solver/problem"

	_ "embed"
	"errors"
	"strings"
)

// terrain is the file terrain/jacksboro_fault.npy: a header, then terrainRows rows from north to south with
// terrainColumns little-endian int16 heights in metres each.
//
//go:embed terrain/jacksboro_fault.npy
var terrain string

const (
	terrainRows, terrainColumns = 344, 403
	terrainHeaderBytes          = 128
	terrainDescription          = "{'descr': '<i2', 'fortran_order': False, 'shape': (344, 403), }"
	terrainWidth, terrainHeight = 30.0, 31.7 // kilometres between the outermost cell centres
)

// jacksboro is a membrane over a real terrain, held at its boundary. On a grid of 401 × 342 points the
// obstacle equals the data without interpolation.
func jacksboro() Builtin {
	return Builtin{
		Name: "jacksboro",
		Summary: "2-D membrane over the terrain of the Jacksboro fault (kilometres), held at its boundary; " +
			"--n 401,342 is the grid of the data",
		Reference: "NASA SRTM elevations distributed by the USGS, public domain (problems/terrain)",
		Dimension: 2,
		build: func(p *problem.Problem, _ []float64) error {
			// The file is embedded, so its header is compared instead of parsed.
			if len(terrain) != terrainHeaderBytes+2*terrainRows*terrainColumns ||
				!strings.Contains(terrain[:terrainHeaderBytes], terrainDescription) {
				return errors.New("the embedded terrain is not an array of 344 × 403 int16")
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
