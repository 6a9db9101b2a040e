// Package checkpoint writes the state of a run to a directory and reads it back, for a restart of the whole run on any
// number of peers. docs/cli.md describes the files.
//
// A set of files has a generation: a number, behind the term of its writer and a dot if that is not 0.
//
//	manifest-G.json    what the set holds, with the length and SHA-256 of every other file
//	box-G-R.npy        the values of box R of the grid, [z][y][x]; of B boxes, B + R has those of the best iterate, if
//	                   that is another one
//	problem-HASH.bin   the marshalled problem, for every other generation
//	problem-HASH-2.bin the same, for the others, so that the damage of one file leaves a whole set
//	lock               the name of the run that writes, which has locked it
//
// Every file is written under a temporary name, synchronised and renamed, and the manifest is the last. Thus a set is
// whole as soon as its manifest exists. The two newest sets are kept.
//
// If the process that leads a run is lost, the one that leads then writes with a greater term. Sets of a greater term are
// newer. A process that only seems lost can still write: the names of its files differ, it removes no file of a greater
// term, and it stops when a set of a greater term is there.
package checkpoint

import (
	"cmp"
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
	Best []float64 // the answer so far, if its residual is smaller than that of U; otherwise nil
	Progress
	// Flags are those of the run by name. A resumed run uses them unless the user gives others.
	Flags map[string]string
}

// Progress is what a run has done.
type Progress struct {
	Step     int             `json:"step"`             // complete time steps
	Sweeps   uint64          `json:"sweeps"`           // since the first start of the run, of the peer with the most
	Residual nullable.Number `json:"residual"`         // relative, the last one known
	Method   []byte          `json:"method,omitempty"` // state of the method at the end of a run; see iterate.Outcome.State
}

// lockName is the file that the writer of a directory locks. It stays there, empty: a file that is removed could be
// locked by two runs.
const lockName = "lock"

// temporary is the suffix of a file until it is complete.
const temporary = ".tmp"

// generation identifies a set of files.
type generation struct{ term, number uint64 }

func (g generation) String() string {
	if g.term == 0 {
		return strconv.FormatUint(g.number, 10)
	}
	return fmt.Sprintf("%d.%d", g.term, g.number)
}

// compare orders generations by age, older ones first.
func (g generation) compare(h generation) int {
	return cmp.Or(cmp.Compare(g.term, h.term), cmp.Compare(g.number, h.number))
}

func manifestName(g generation) string { return fmt.Sprintf("manifest-%v.json", g) }

func boxName(g generation, rank int) string { return fmt.Sprintf("box-%v-%d.npy", g, rank) }

// problemName returns the name of one of the two copies of the problem.
func problemName(fingerprint []byte, second bool) string {
	name := "problem-" + hex.EncodeToString(fingerprint[:8])
	if second {
		name += "-2"
	}
	return name + ".bin"
}

// generationOf returns the generation in the name of a manifest or a box, complete or temporary, and false for the name
// of another file.
func generationOf(name string) (generation, bool) {
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
			return generation{}, false
		}
	}
	var g generation
	term, after, dotted := strings.Cut(number, ".")
	if !dotted {
		term, after = "0", number
	}
	var wrong error
	g.number, wrong = strconv.ParseUint(after, 10, 63)
	if wrong == nil {
		g.term, wrong = strconv.ParseUint(term, 10, 63)
	}
	return g, wrong == nil && g.number > 0 && g.String() == number
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
