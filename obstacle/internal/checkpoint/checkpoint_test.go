package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stateOf returns a state of the problem membrane whose values follow from step.
func stateOf(t require.TestingT, n, parts [3]int, step int) *State {
	spec, err := file.Open(nil, "membrane", nil)
	require.NoError(t, err)
	cuts, err := problem.GridOf(n, parts)
	require.NoError(t, err)
	s := &State{
		Spec: spec, N: n, Cuts: cuts.Cuts, U: make([]float64, n[0]*n[1]*n[2]),
		Progress: Progress{Step: step, Sweeps: uint64(10 * step), Residual: 0.5},
		Flags:    map[string]string{"scheme": "async", "tol": "1e-7"},
	}
	for i := range s.U {
		s.U[i] = math.Sin(float64(i + 1000*step))
	}
	return s
}

func small(t require.TestingT, step int) *State {
	return stateOf(t, [3]int{3, 4, 5}, [3]int{1, 2, 2}, step)
}

// written returns a directory in which the given steps were written, one set for each.
func written(t *testing.T, steps ...int) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "c")
	w, err := Create(directory, "v1")
	require.NoError(t, err)
	for _, step := range steps {
		require.NoError(t, w.Write(small(t, step)))
	}
	w.Close()
	return directory
}

func requireState(t require.TestingT, want *State, got *Found) {
	require.Equal(t, want.Spec.Fingerprint(), got.Spec.Fingerprint())
	require.Equal(t, want.N, got.N)
	require.Equal(t, want.Cuts, got.Cuts)
	require.Equal(t, want.U, got.U)
	require.Equal(t, want.Best, got.Best)
	require.Equal(t, want.Progress, got.Progress)
	require.Equal(t, want.Flags, got.Flags)
}

func names(t require.TestingT, directory string) (out []string) {
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

// What was written is read, on any grid and partition, also after another writer has continued.
func TestRoundTrip(t *testing.T) {
	base := t.TempDir()
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		directory := filepath.Join(base, fmt.Sprint(count))
		n, parts := [3]int{1, 1, 1}, [3]int{1, 1, 1}
		for a := range rapid.IntRange(1, 3).Draw(t, "dimension") {
			n[a] = rapid.IntRange(1, 9).Draw(t, "n")
			parts[a] = rapid.IntRange(1, min(3, n[a])).Draw(t, "parts")
		}
		w, err := Create(directory, "v1")
		require.NoError(t, err)
		for step := range rapid.IntRange(1, 4).Draw(t, "writes") {
			s := stateOf(t, n, parts, step)
			if rapid.Bool().Draw(t, "a better iterate") {
				s.Best = stateOf(t, n, parts, step+9).U
			}
			w.disk = unlimited()
			require.NoError(t, w.Write(s))
			f, err := Open(directory, nil)
			require.NoError(t, err)
			require.Empty(t, f.Skipped)
			requireState(t, s, f)
			if rapid.Bool().Draw(t, "another writer") {
				_, err = f.Writer("v2")
				require.EqualError(t, err, "checkpoint "+directory+": another run writes its checkpoints there; "+
					"wait until it has ended, or give another directory")
				w.Close()
				w, err = f.Writer("v2")
				require.NoError(t, err)
			}
		}
	})
}

// Two generations are kept.
func TestTwoGenerationsAreKept(t *testing.T) {
	directory := written(t, 1, 2, 3)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "box-of-mine.npy"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "box-1-7.npy.tmp"), nil, 0o600))
	f, err := Open(directory, nil)
	require.NoError(t, err)
	w, err := f.Writer("v1")
	require.NoError(t, err)
	require.NoError(t, w.Write(small(t, 4)))
	print := f.Spec.Fingerprint()
	require.ElementsMatch(t, []string{
		"manifest-3.json", "box-3-0.npy", "box-3-1.npy", "box-3-2.npy", "box-3-3.npy",
		"manifest-4.json", "box-4-0.npy", "box-4-1.npy", "box-4-2.npy", "box-4-3.npy",
		problemName(print[:], false), problemName(print[:], true), "box-of-mine.npy", lockName,
	}, names(t, directory))
}

// A run does not continue a checkpoint that another run has replaced since it was read.
func TestStaleCheckpoint(t *testing.T) {
	directory := written(t, 1)
	mine, err := Open(directory, nil)
	require.NoError(t, err)
	other, err := Open(directory, nil)
	require.NoError(t, err)
	w, err := other.Writer("v1")
	require.NoError(t, err)
	require.NoError(t, w.Write(small(t, 2)))
	w.Close()
	_, err = mine.Writer("v1")
	require.EqualError(t, err, "checkpoint "+directory+
		": another run has written a checkpoint there since this one began; resume again")
}

// Boxes are NumPy arrays without the axes that the grid does not use.
func TestBoxesAreArrays(t *testing.T) {
	directory := written(t, 1)
	text, err := os.ReadFile(filepath.Join(directory, "box-1-3.npy"))
	require.NoError(t, err)
	a, err := npy.Decode(text)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2, 3}, a.Shape)
	require.Equal(t, small(t, 1).U[59], a.At(a.Len()-1))
	require.Equal(t, npy.Header([]int{4}), header([3]int{9, 1, 1}, problem.Box{Lo: [3]int{5}, Hi: [3]int{9, 1, 1}}))
}

// A directory with a checkpoint is not overwritten, and one that cannot be made is an error.
func TestCreateRefuses(t *testing.T) {
	directory := written(t, 1)
	_, err := Create(directory, "v1")
	require.ErrorContains(t, err, directory+": the directory holds the checkpoint manifest-1.json; continue it with obstacle resume")
	_, err = Create(filepath.Join(directory, "no", "such"), "v1")
	require.ErrorContains(t, err, "the directory cannot be made: no such file or directory")
	_, err = Create(filepath.Join(directory, "manifest-1.json"), "v1")
	require.ErrorContains(t, err, "not a directory")
}

// edit replaces a file by what change makes of it; nil removes it.
func edit(t *testing.T, directory, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(directory, name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	if text = change(text); text == nil {
		require.NoError(t, os.Remove(path))
		return
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

func flip(b []byte) []byte { b[len(b)/2] ^= 1; return b }

func cut(b []byte) []byte { return b[:len(b)/2] }

// A set with a torn, edited, exchanged or missing file is not used: the older one is, and the error names the file and
// what is wrong. Without an older set there is an error.
func TestDamage(t *testing.T) {
	print := small(t, 1).Spec.Fingerprint()
	for _, c := range []struct {
		file   string
		change func([]byte) []byte
		want   string
	}{
		{"box-2-1.npy", cut, "it has 136 bytes, and manifest-2.json states 272: it is incomplete or was edited"},
		{"box-2-1.npy", flip, "and manifest-2.json states "},
		{"box-2-1.npy", func([]byte) []byte { return nil }, "no such file"},
		{"box-2-0.npy", nil, "it was edited or belongs to another checkpoint"}, // exchanged with that of generation 1
		{"manifest-2.json", cut, "it is not a manifest: unexpected end of JSON input"},
		{"manifest-2.json", func([]byte) []byte { return []byte{} }, "it is not a manifest: unexpected end of JSON input"},
		{"manifest-2.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"step": 2`), []byte(`"step": 3`), 1)
		}, "it was edited or is incomplete"},
		{"manifest-2.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 0`), 1)
		}, "it is not a manifest: it has version 0"},
	} {
		directory := written(t, 1, 2)
		change := c.change
		if change == nil {
			other, err := os.ReadFile(filepath.Join(directory, "box-1-0.npy"))
			require.NoError(t, err)
			change = func([]byte) []byte { return other }
		}
		edit(t, directory, c.file, change)
		f, err := Open(directory, nil)
		require.NoError(t, err, "%s: %s", c.file, c.want)
		requireState(t, small(t, 1), f)
		require.Len(t, f.Skipped, 1)
		require.ErrorContains(t, f.Skipped[0], filepath.Join(directory, c.file)+": ")
		require.ErrorContains(t, f.Skipped[0], c.want)

		w, err := f.Writer("v1")
		require.NoError(t, err)
		require.EqualValues(t, 3, w.next.number, "the damaged files are not overwritten")

		edit(t, directory, "box-1-2.npy", flip)
		_, err = Open(directory, nil)
		require.ErrorContains(t, err, "no set of files is whole; restore them from a copy, or start again")
		require.ErrorContains(t, err, filepath.Join(directory, c.file)+": ")
		require.ErrorContains(t, err, filepath.Join(directory, "box-1-2.npy")+": its SHA-256 is ")
	}
	// Each of two successive sets has a copy of the problem, also when another writer goes on.
	for _, second := range []bool{false, true} {
		directory := written(t, 1, 2)
		edit(t, directory, problemName(print[:], second), flip)
		f, err := Open(directory, nil)
		require.NoError(t, err)
		requireState(t, small(t, map[bool]int{false: 2, true: 1}[second]), f)
		w, err := f.Writer("v1")
		require.NoError(t, err)
		require.NoError(t, w.Write(small(t, 3)))
		w.Close()
		edit(t, directory, problemName(print[:], !second), flip)
		f, err = Open(directory, nil)
		require.NoError(t, err)
		requireState(t, small(t, 3), f)
		edit(t, directory, problemName(print[:], second), flip)
		_, err = Open(directory, nil)
		require.ErrorContains(t, err, problemName(print[:], second)+": its SHA-256 is ")
	}
}

// A manifest of a newer version is refused, even if there is an older set.
func TestNewerVersion(t *testing.T) {
	directory := written(t, 1, 2)
	edit(t, directory, "manifest-2.json", func([]byte) []byte {
		return []byte(`{"version": 2, "program": "v9", "state": "of a later program"}`)
	})
	_, err := Open(directory, nil)
	require.EqualError(t, err, filepath.Join(directory, "manifest-2.json")+
		`: the manifest has version 2, and this program reads version 1; it was written by obstacle "v9": resume the run with that program`)
}

// A set with a wrong name, wrong values or a directory in place of a file is refused, although its checksums are right.
func TestForged(t *testing.T) {
	directory := written(t, 1)
	require.NoError(t, os.Rename(filepath.Join(directory, "manifest-1.json"), filepath.Join(directory, "manifest-5.json")))
	_, err := Open(directory, nil)
	require.ErrorContains(t, err, "it is of generation 1, not 5: it was renamed")

	_, err = Open(filepath.Join(directory, "none"), nil)
	require.ErrorContains(t, err, "the directory cannot be read: no such file or directory")
	_, err = Open(t.TempDir(), nil)
	require.ErrorContains(t, err, "holds no file manifest-*.json")

	directory = filepath.Join(t.TempDir(), "c")
	w, err := Create(directory, "v1")
	require.NoError(t, err)
	s := small(t, 1)
	s.U[7] = math.Inf(1)
	require.NoError(t, w.Write(s))
	_, err = Open(directory, nil)
	require.ErrorContains(t, err, "box-1-1.npy: the value +Inf at grid point [2 3 1] is not finite")
}

// manifestOf returns the bytes of a valid manifest after a change.
func manifestOf(t require.TestingT, change func(m *manifest)) []byte {
	s := small(t, 1)
	print := s.Spec.Fingerprint()
	m := &manifest{Generation: 1, Progress: s.Progress, N: s.N, Cuts: s.Cuts, Flags: s.Flags}
	m.Problem.Name, m.Problem.Fingerprint = "membrane", fmt.Sprintf("%x", print)
	m.Problem.entry = entry{File: problemName(print[:], false), Bytes: 80}
	for r := range 4 {
		m.Boxes = append(m.Boxes, entry{File: boxName(generation{0, 1}, r), Bytes: map[int]int64{0: 128 + 8*18, 1: 128 + 8*18, 2: 128 + 8*12, 3: 128 + 8*12}[r]})
	}
	change(m)
	text, err := m.encode("v1")
	require.NoError(t, err)
	return text
}

// A manifest that names impossible things is refused, although its checksum is right.
func TestManifestRefusals(t *testing.T) {
	_, err := decode(generation{0, 1}, manifestOf(t, func(*manifest) {}))
	require.NoError(t, err)
	for want, change := range map[string]func(m *manifest){
		"0 grid points along x":      func(m *manifest) { m.N[0] = 0 },
		"has more than":              func(m *manifest) { m.N = [3]int{1 << 24, 1 << 24, 1 << 24} },
		"must run from 0 to 4":       func(m *manifest) { m.Cuts[1] = []int{0, 2} },
		"no fingerprint":             func(m *manifest) { m.Problem.Fingerprint = "ab" },
		"it names a problem in":      func(m *manifest) { m.Problem.File = "../problem" },
		"with -1 bytes":              func(m *manifest) { m.Problem.Bytes = -1 },
		"it is of time step -1":      func(m *manifest) { m.Step = -1 },
		"it names 3 boxes of 4":      func(m *manifest) { m.Boxes = m.Boxes[:3] },
		"it names 7 boxes of 4":      func(m *manifest) { m.Boxes = append(m.Boxes, m.Boxes[:3]...) },
		`it names box 4 in "box-1-0`: func(m *manifest) { m.Boxes = append(m.Boxes, m.Boxes...) },
		`it names box 2 in "../../x`: func(m *manifest) { m.Boxes[2].File = "../../x" },
		"with 7 bytes":               func(m *manifest) { m.Boxes[0].Bytes = 7 },
	} {
		_, err := decode(generation{0, 1}, manifestOf(t, change))
		require.ErrorContains(t, err, want)
	}
	text := bytes.Replace(manifestOf(t, func(*manifest) {}), []byte(`"generation"`), []byte(`"generations"`), 1)
	var e envelope
	require.NoError(t, json.Unmarshal(text, &e))
	text = []byte(strings.Replace(string(text), e.SHA256, checksum(e.Checkpoint), 1))
	_, err = decode(generation{0, 1}, text)
	require.ErrorContains(t, err, `unknown field "generations"`)
	big := small(t, 1)
	big.Flags = map[string]string{"rows": strings.Repeat("x", maxManifest)}
	w, err := Create(filepath.Join(t.TempDir(), "c"), "v1")
	require.NoError(t, err)
	require.ErrorContains(t, w.Write(big), "a manifest of")
}

func FuzzManifest(f *testing.F) {
	whole := func(checkpoint []byte) []byte {
		return fmt.Appendf(nil, `{"version": 1, "program": "v1", "sha256": %q, "checkpoint": %s}`, checksum(checkpoint), checkpoint)
	}
	var e envelope
	valid := manifestOf(f, func(*manifest) {})
	require.NoError(f, json.Unmarshal(valid, &e))
	f.Add([]byte(e.Checkpoint))
	f.Add([]byte(`{"generation": 1, "n": [4, 1, 1], "cuts": [[0, 4], [0, 1], [0, 1]], "boxes": [{}]}`))
	f.Fuzz(func(t *testing.T, checkpoint []byte) {
		m, err := decode(generation{0, 1}, whole(checkpoint))
		if err != nil {
			return
		}
		text, err := m.encode("v1")
		require.NoError(t, err)
		again, err := decode(generation{0, 1}, text)
		require.NoError(t, err)
		require.Equal(t, m.Boxes, again.Boxes)
	})
}

// A directory whose manifest, problem and boxes hold anything is refused, or has a checkpoint of finite values that fits its grid.
func FuzzSet(f *testing.F) {
	state := small(f, 1)
	directory := filepath.Join(f.TempDir(), "c")
	w, err := Create(directory, "v1")
	require.NoError(f, err)
	require.NoError(f, w.Write(state))
	w.Close()
	files := map[string][]byte{}
	for _, name := range names(f, directory) {
		files[name], err = os.ReadFile(filepath.Join(directory, name))
		require.NoError(f, err)
	}
	print, g := state.Spec.Fingerprint(), generation{0, 1}
	ofManifest, ofProblem, ofBox := manifestName(g), problemName(print[:], false), boxName(g, 0)
	text, box := files[ofProblem], files[ofBox]
	var e envelope
	require.NoError(f, json.Unmarshal(files[ofManifest], &e))
	f.Add([]byte(e.Checkpoint), text, box)
	for _, number := range []string{"9223372036854775807", "-1", "4611686018427387904", "NaN", "1e308"} {
		for _, at := range regexp.MustCompile(`[:\[,] *\d+`).FindAllIndex(e.Checkpoint, -1) {
			f.Add([]byte(string(e.Checkpoint[:at[0]+1])+number+string(e.Checkpoint[at[1]:])), text, box)
		}
	}
	f.Add([]byte(e.Checkpoint), text[:len(text)/2], box)
	f.Add([]byte(e.Checkpoint), text, box[:len(box)-8])
	f.Add([]byte(e.Checkpoint), text, append(slices.Clone(box[:len(box)-8]), 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)) // NaN
	f.Fuzz(func(t *testing.T, checkpoint, text, box []byte) {
		// The sums of the files are right, so that what is in them is read.
		checkpoint = bytes.ReplaceAll(checkpoint, []byte(checksum(files[ofProblem])), []byte(checksum(text)))
		checkpoint = bytes.ReplaceAll(checkpoint, []byte(checksum(files[ofBox])), []byte(checksum(box)))
		manifest := fmt.Appendf(nil, `{"version": 1, "program": "v1", "sha256": %q, "checkpoint": %s}`, checksum(checkpoint), checkpoint)
		to := t.TempDir()
		for name, content := range files {
			switch name {
			case ofManifest:
				content = manifest
			case ofProblem:
				content = text
			case ofBox:
				content = box
			}
			require.NoError(t, os.WriteFile(filepath.Join(to, name), content, 0o600))
		}
		found, err := Open(to, nil)
		if err != nil {
			return
		}
		require.Len(t, found.U, found.N[0]*found.N[1]*found.N[2])
		for _, v := range found.U {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
		}
		_, _ = found.Problem()
	})
}
