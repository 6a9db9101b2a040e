// Package checkpoint writes the state of a run to a directory and reads it back, for a restart of the whole run on any
// number of peers. docs/cli.md describes the files.
//
// A set of files has a generation number:
//
//	manifest-G.json    what the set holds, with the length and SHA-256 of every other file
//	box-G-R.npy        the values of box R of the grid, [z][y][x]
//	problem-HASH.bin   the marshalled problem, the same for all generations
//	lock               empty; the run that writes has locked it
//
// Every file is written under a temporary name, synchronised and renamed, and the manifest is the last. Thus a set is
// whole as soon as its manifest exists. The two newest sets are kept.
package checkpoint

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// State is the state of a run.
type State struct {
	Spec *file.Spec
	N    [3]int
	Cuts [3][]int  // divide the grid into boxes, one for each file
	U    []float64 // [z][y][x]; of a nonstationary problem the end of the last complete time step
	Progress
	// Flags are those of the run by name. A resumed run uses them unless the user gives others.
	Flags map[string]string
}

// Progress is what a run has done.
type Progress struct {
	Step     int             `json:"step"`     // complete time steps
	Sweeps   uint64          `json:"sweeps"`   // since the first start of the run, of the peer with the most
	Residual nullable.Number `json:"residual"` // relative, the last one known
}

// lockName is the file that the writer of a directory locks. It stays there, empty: a file that is removed could be
// locked by two runs.
const lockName = "lock"

// temporary is the suffix of a file until it is complete.
const temporary = ".tmp"

func manifestName(generation uint64) string { return fmt.Sprintf("manifest-%d.json", generation) }

func boxName(generation uint64, rank int) string {
	return fmt.Sprintf("box-%d-%d.npy", generation, rank)
}

func problemName(fingerprint []byte) string {
	return "problem-" + hex.EncodeToString(fingerprint[:8]) + ".bin"
}

// generationOf returns the generation in the name of a manifest or a box, complete or temporary, and false for the name
// of another file.
func generationOf(name string) (uint64, bool) {
	name = strings.TrimSuffix(name, temporary)
	number, isManifest := strings.CutPrefix(name, "manifest-")
	if isManifest {
		number, isManifest = strings.CutSuffix(number, ".json")
	}
	if !isManifest {
		rest, isBox := strings.CutPrefix(name, "box-")
		var rank string
		number, rank, _ = strings.Cut(strings.TrimSuffix(rest, ".npy"), "-")
		if r, err := strconv.Atoi(rank); !isBox || err != nil || r < 0 || !strings.HasSuffix(rest, ".npy") {
			return 0, false
		}
	}
	g, err := strconv.ParseUint(number, 10, 63)
	return g, err == nil && g > 0
}

// header returns the header of the array of a box. Axes that the grid does not use are left out.
func header(n [3]int, b problem.Box) []byte {
	size, used := b.Size(), 3
	for used > 1 && n[used-1] == 1 {
		used--
	}
	var shape []int
	for a := used - 1; a >= 0; a-- {
		shape = append(shape, size[a])
	}
	return npy.Header(shape)
}
