package checkpoint

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Found is the newest whole checkpoint of a directory.
type Found struct {
	State
	Directory string
	Name      string  // path of the manifest
	Skipped   []error // why newer sets are not whole

	generation generation
	last       generation // newest of a file in the directory
	problem    string     // file of the problem
}

// Open reads the newest whole checkpoint of a directory. If no set of files is whole, the error names the files and
// what is wrong with them. A set of a newer version is an error, since the run had come further. Problems that
// are not files are looked up in the catalog; a nil catalog contains the built-in problems.
func Open(directory string, c *problems.Catalog) (*Found, error) {
	last, all, err := generations(directory)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("checkpoint %s: the directory holds no file manifest-*.json; "+
			"give the directory of obstacle solve --checkpoint", directory)
	}
	var skipped []error
	for _, g := range all {
		f := &Found{
			Directory: directory, generation: g, last: last, Skipped: skipped,
			Name: filepath.Join(directory, manifestName(g)),
		}
		err := f.read(c)
		if err == nil {
			return f, nil
		}
		if _, newer := errors.AsType[*newerVersion](err); newer {
			return nil, err
		}
		skipped = append(skipped, err)
	}
	return nil, fmt.Errorf("checkpoint %s: no set of files is whole; restore them from a copy, or start again with "+
		"obstacle solve: %w", directory, joined(skipped))
}

// Holds reports whether a directory has a checkpoint, whole or not.
func Holds(directory string) bool {
	_, all, err := generations(directory)
	return err == nil && len(all) > 0
}

// joined joins errors in one line.
func joined(all []error) error {
	err := all[0]
	for _, next := range all[1:] {
		err = fmt.Errorf("%w; %w", err, next)
	}
	return err
}

// Problem builds the problem on the grid of the checkpoint, and checks that a time step is left.
func (f *Found) Problem() (*problem.Problem, error) {
	p, err := f.Spec.BuildValid(f.N[:f.Spec.Dimension()])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	case p.N != f.N || f.Step > 0 && f.Step >= p.Steps():
		return nil, fmt.Errorf("%s: a grid of %v after time step %d does not belong to the problem %s", f.Name, f.N, f.Step,
			f.Spec.Name())
	}
	return p, nil
}

// Writer returns a writer that adds to the checkpoints of the directory. It keeps the one that was found until another
// one is whole.
func (f *Found) Writer(program string) (*Writer, error) {
	w := &Writer{
		directory: f.Directory, program: program, disk: system{}, run: rand.Text(), next: f.last, whole: f.generation,
	}
	print := f.Spec.Fingerprint()
	w.second = f.problem == problemName(print[:], false) // the set that was found keeps its copy
	if w.next.number++; w.next.term > 0 {                // names that no process of the earlier run can use
		w.next.term++
	}
	return w.open()
}

// generations returns the newest generation of a file in a directory and the generations that have a manifest, newest
// first.
func generations(directory string) (last generation, all []generation, err error) {
	files, err := os.ReadDir(directory)
	if err != nil {
		return last, nil, fmt.Errorf("checkpoint %s: the directory cannot be read: %w", directory, reason(err))
	}
	for _, f := range files {
		g, is := generationOf(f.Name())
		if !is {
			continue
		}
		if g.compare(last) > 0 {
			last = g
		}
		if f.Name() == manifestName(g) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b generation) int { return b.compare(a) })
	return last, all, nil
}

// read reads the set of a generation. Its errors name the file.
func (f *Found) read(c *problems.Catalog) error {
	text, err := input.ReadFile(f.Name, maxManifest)
	var m *manifest
	if err == nil {
		m, err = decode(f.generation, text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	for _, e := range append([]entry{m.Problem.entry}, m.Boxes...) { // before memory is allocated for their values
		if err := f.checkLength(&e); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(f.Directory, e.File), err)
		}
	}
	if f.Spec, err = f.readProblem(c, m); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(f.Directory, m.Problem.File), err)
	}
	f.problem = m.Problem.File
	f.N, f.Cuts, f.Progress, f.Flags = m.N, m.Cuts, m.Progress, m.Flags
	p := problem.Partition{Cuts: m.Cuts}
	for _, values := range []*[]float64{&f.U, &f.Best} {
		if len(m.Boxes) == 0 {
			break
		}
		*values = make([]float64, m.N[0]*m.N[1]*m.N[2])
		for r, e := range m.Boxes[:p.Peers()] {
			if err := f.readBox(*values, &e, p.Box(iterate.Rank(r))); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(f.Directory, e.File), err)
			}
		}
		m.Boxes = m.Boxes[p.Peers():]
	}
	return nil
}

func (f *Found) checkLength(e *entry) error {
	i, err := os.Stat(filepath.Join(f.Directory, e.File))
	switch {
	case err != nil:
		return reason(err)
	case !i.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case i.Size() != e.Bytes:
		return fmt.Errorf("it has %d bytes, and %s states %d: it is incomplete or was edited", i.Size(),
			filepath.Base(f.Name), e.Bytes)
	}
	return nil
}

func (f *Found) readProblem(c *problems.Catalog, m *manifest) (*file.Spec, error) {
	text, err := input.ReadFile(filepath.Join(f.Directory, m.Problem.File), m.Problem.Bytes)
	if err != nil {
		return nil, err
	}
	if err := f.compare(checksum(text), &m.Problem.entry); err != nil {
		return nil, err
	}
	s, err := file.UnmarshalSpec(c, text)
	if err != nil {
		return nil, err
	}
	if print := s.Fingerprint(); hex.EncodeToString(print[:]) != m.Problem.Fingerprint {
		return nil, fmt.Errorf("the problem %s has the fingerprint %.16x in this program, and %s states %.16s: "+
			"resume the run with the program that wrote it", s.Name(), print, filepath.Base(f.Name), m.Problem.Fingerprint)
	}
	return s, nil
}

// compare compares the checksum of a file with that of its entry.
func (f *Found) compare(sum string, e *entry) error {
	if sum != e.SHA256 {
		return fmt.Errorf("its SHA-256 is %.16s, and %s states %.16s: it was edited or belongs to another checkpoint", sum,
			filepath.Base(f.Name), e.SHA256)
	}
	return nil
}

// readBox reads the values of a box into those of the grid.
func (f *Found) readBox(values []float64, e *entry, b problem.Box) error {
	in, _, err := input.Open(filepath.Join(f.Directory, e.File), e.Bytes)
	if err != nil {
		return err
	}
	defer in.Close()
	hash := sha256.New()
	from := io.TeeReader(in, hash)
	want := header(f.N, b)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil {
		return reason(err)
	}
	buffer := make([]byte, min(pieceBytes, blocks.Bytes(b)))
	for at := int64(0); at < blocks.Bytes(b); at += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), blocks.Bytes(b)-at)]
		if _, err := io.ReadFull(from, buffer); err != nil {
			return reason(err)
		}
		if err := blocks.Put(values, f.N, b, at, buffer); err != nil {
			return err
		}
	}
	if err := f.compare(hex.EncodeToString(hash.Sum(nil)), e); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("it is not an array of the box %v", b)
	}
	for _, idx := range b.Each {
		v := values[idx[0]-1+f.N[0]*(idx[1]-1+f.N[1]*(idx[2]-1))]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the value %g at grid point %v is not finite", v, idx)
		}
	}
	return nil
}
