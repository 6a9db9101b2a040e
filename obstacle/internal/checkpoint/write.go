package checkpoint

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Writer writes the checkpoints of one problem to a directory, which no other Writer can use until Close or the end of
// the process. It is used by one goroutine at a time.
type Writer struct {
	directory string
	locked    *os.File
	program   string
	disk      disk
	run       string     // in the lock file
	holds     bool       // the lock; false: a process has it that led the run before
	next      generation // of the next set
	whole     generation // of the newest whole set; zero: none
	problem   entry      // of the next set; zero: not written yet
	other     entry      // the other copy, likewise
	second    bool       // problem is the second copy
}

// ErrSuperseded is wrapped by errors of a Writer that must not write any more: the process that leads the run now, or
// another run, writes to the directory.
var ErrSuperseded = errors.New("another process writes the checkpoints there now")

// Run returns the name that the run has in the directory, for Continue.
func (w *Writer) Run() string { return w.run }

// Whole reports whether the directory held a checkpoint when the writer was made, or it has written one.
func (w *Writer) Whole() bool { return w.whole.number > 0 }

// Term returns the term of the writer.
func (w *Writer) Term() uint64 { return w.next.term }

// Create returns a writer to a directory, which is made if it does not exist. A directory with a checkpoint is an
// error. program is the version of the program, for manifests.
func Create(directory, program string) (*Writer, error) {
	if err := os.Mkdir(directory, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("checkpoint %s: the directory cannot be made: %w", directory, reason(err))
	}
	last, all, err := generations(directory)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return nil, fmt.Errorf("checkpoint %s: the directory holds the checkpoint %s; continue it with obstacle resume, "+
			"or give another directory", directory, manifestName(all[0]))
	}
	w := &Writer{directory: directory, program: program, disk: system{}, run: rand.Text(), next: last}
	w.next.number++
	return w.open()
}

// Continue returns a writer that goes on with the checkpoints of a run whose writer was lost. The directory must exist,
// and hold no checkpoint of another run. A writer with a greater term that only seemed lost stops when the new one has
// written a set.
func Continue(directory, program, run string, term uint64) (*Writer, error) {
	_, all, err := generations(directory)
	if err != nil {
		return nil, err
	}
	w := &Writer{directory: directory, program: program, disk: system{}, run: run, next: generation{term, 1}}
	if len(all) > 0 {
		w.whole = all[0]
	}
	return w.lock(true)
}

// open locks the directory, and returns an error if another run has locked it or if no file can be created there.
func (w *Writer) open() (*Writer, error) { return w.lock(false) }

// lock locks the directory and writes the name of the run. A process that led this run before may have the lock.
func (w *Writer) lock(continued bool) (*Writer, error) {
	path := filepath.Join(w.directory, lockName)
	if i, err := os.Lstat(path); err == nil && !i.Mode().IsRegular() { // a symbolic link would be written through
		return nil, fmt.Errorf("checkpoint %s: it is not a regular file: delete it", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: the file cannot be created: %w", path, reason(err))
	}
	w.locked = f
	w.holds = !lock(f)
	if continued {
		err = w.continues()
	} else {
		err = w.begins()
	}
	if err == nil {
		err = w.try()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

// begins names the run in the lock file, unless another process writes or has written to the directory.
func (w *Writer) begins() error {
	if !w.holds {
		return fmt.Errorf("checkpoint %s: another run writes its checkpoints there; wait until it has ended, "+
			"or give another directory", w.directory)
	}
	last, _, err := generations(w.directory)
	if err != nil {
		return err
	}
	if last.compare(w.next) >= 0 {
		return fmt.Errorf("checkpoint %s: another run has written a checkpoint there since this one began; resume again",
			w.directory)
	}
	return w.sign()
}

// continues checks that the run in the lock file is that of the writer. A directory that no run has used is taken.
func (w *Writer) continues() error {
	switch run, err := w.signature(); {
	case err != nil:
		return err
	case run == "" && w.whole.number == 0 && w.holds:
		return w.sign()
	case run != w.run:
		return fmt.Errorf("checkpoint %s: the directory belongs to another run", w.directory)
	}
	return w.current()
}

// sign writes the name of the run to the lock file.
func (w *Writer) sign() error {
	_, err := w.locked.WriteAt([]byte(w.run), 0)
	if err == nil {
		err = w.locked.Truncate(int64(len(w.run)))
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: the file cannot be written: %w", w.locked.Name(), reason(err))
	}
	return nil
}

// signature returns what the lock file holds; empty if there is none.
func (w *Writer) signature() (string, error) {
	// The file is opened anew, so that a network file system shows what others have written.
	text, err := input.ReadFile(w.locked.Name(), maxManifest)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("checkpoint %s: %w", w.locked.Name(), err)
	}
	return string(text), nil
}

// current returns ErrSuperseded if a writer of a greater term has written a set, or another run uses the directory.
func (w *Writer) current() error {
	w.holds = w.holds || !lock(w.locked)
	if run, err := w.signature(); err != nil || run != "" && run != w.run {
		return cmp.Or(err, fmt.Errorf("checkpoint %s: %w: another run", w.directory, ErrSuperseded))
	}
	_, all, err := generations(w.directory)
	if err == nil && len(all) > 0 && all[0].term > w.next.term {
		err = fmt.Errorf("checkpoint %s: %w: %s is of the process that leads the run", w.directory, ErrSuperseded,
			manifestName(all[0]))
	}
	return err
}

// Close lets others write to the directory.
func (w *Writer) Close() { w.locked.Close() }

// try returns an error if no file can be created in the directory.
func (w *Writer) try() error {
	name := manifestName(w.next) + temporary
	_, err := w.put(name, func(io.Writer) error { return nil })
	if err == nil {
		err = w.remove(name)
	}
	return err
}

// Write writes a set of files. After an error the sets in the directory are as before, and the next call of Write may
// succeed: the files of the incomplete set are removed, so that they do not fill the disk. Write keeps the last set and
// this one, and removes older ones.
func (w *Writer) Write(s *State) error {
	if err := w.current(); err != nil {
		return err
	}
	m := &manifest{
		Generation: w.next.number, Term: w.next.term, Progress: s.Progress, N: s.N, Cuts: s.Cuts, Flags: s.Flags,
	}
	w.next.number++
	if err := w.writeSet(m, s); err != nil {
		w.removeBoxes(m)
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	before := w.whole
	w.whole = m.generation()
	w.problem, w.other, w.second = w.other, w.problem, !w.second
	return w.removeOthers(before)
}

// writeSet writes the files of a set, its manifest last.
func (w *Writer) writeSet(m *manifest, s *State) error {
	if err := w.writeProblem(m, s); err != nil {
		return err
	}
	p := problem.Partition{Cuts: s.Cuts}
	for _, values := range [][]float64{s.U, s.Best} {
		for r := range p.Peers() {
			if values == nil {
				break
			}
			b, name := p.Box(iterate.Rank(r)), boxName(m.generation(), len(m.Boxes))
			e, err := w.replace(name, func(f io.Writer) error { return writeBox(f, values, s.N, b) })
			if err != nil {
				return err
			}
			m.Boxes = append(m.Boxes, e)
		}
	}
	if err := w.sync(); err != nil { // the files that the manifest names precede it
		return err
	}
	text, err := m.encode(w.program)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", w.directory, err)
	}
	if err := w.current(); err != nil { // writing may have taken long
		return err
	}
	_, err = w.replace(manifestName(m.generation()), func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
	return err
}

// writeProblem writes the copy of the problem that the set uses, unless it is there, and sets the manifest's entry.
func (w *Writer) writeProblem(m *manifest, s *State) error {
	print := s.Spec.Fingerprint()
	m.Problem.Name, m.Problem.Fingerprint = s.Spec.Name(), hex.EncodeToString(print[:])
	if w.problem.File == "" {
		e, err := w.replace(problemName(print[:], w.second), func(f io.Writer) error {
			_, err := f.Write(s.Spec.Marshal())
			return err
		})
		if err != nil {
			return err
		}
		w.problem = e
	}
	m.Problem.entry = w.problem
	return nil
}

// pieceBytes is the size of the pieces in which boxes are written and read.
const pieceBytes = 1 << 18

func writeBox(f io.Writer, values []float64, n [3]int, b problem.Box) error {
	if _, err := f.Write(header(n, b)); err != nil {
		return err
	}
	buffer := make([]byte, min(pieceBytes, blocks.Bytes(b)))
	for at := int64(0); at < blocks.Bytes(b); {
		piece := buffer[:min(int64(len(buffer)), blocks.Bytes(b)-at)]
		if err := blocks.Get(piece, values, n, b, at); err != nil {
			return err
		}
		if _, err := f.Write(piece); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// replace writes a file under a temporary name and renames it when it is complete and synchronised.
func (w *Writer) replace(name string, write func(io.Writer) error) (entry, error) {
	until := name + temporary
	if _, is := generationOf(name); !is && w.next.term > 0 { // processes of several terms may write it
		until = fmt.Sprintf("%s.%d%s", name, w.next.term, temporary)
	}
	e, err := w.put(until, write)
	if err != nil {
		return e, err
	}
	e.File = name
	path := filepath.Join(w.directory, name)
	if err := w.disk.Rename(filepath.Join(w.directory, until), path); err != nil {
		return e, fmt.Errorf("checkpoint %s: the file cannot be renamed to its name: %w", path, reason(err))
	}
	return e, nil
}

// put writes and synchronises a file. After an error it removes the file.
func (w *Writer) put(name string, write func(io.Writer) error) (entry, error) {
	path := filepath.Join(w.directory, name)
	final := strings.TrimSuffix(path, temporary)
	f, err := w.disk.Create(path)
	if err != nil {
		return entry{}, fmt.Errorf("checkpoint %s: the file cannot be created: %w", final, reason(err))
	}
	hash, count := sha256.New(), &counter{}
	if err = write(io.MultiWriter(f, hash, count)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(reason(err), reason(f.Close())); err != nil {
		_ = w.disk.Remove(path) // err is the error to report
		return entry{}, fmt.Errorf("checkpoint %s: the file cannot be written: %w", final, err)
	}
	return entry{File: name, Bytes: count.bytes, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// counter counts the bytes that are written to it.
type counter struct{ bytes int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return len(b), nil
}

func (w *Writer) sync() error {
	if err := w.disk.Sync(w.directory); err != nil {
		return fmt.Errorf("checkpoint %s: the directory cannot be synchronised: %w", w.directory, reason(err))
	}
	return nil
}

// remove removes a file.
func (w *Writer) remove(name string) error {
	path := filepath.Join(w.directory, name)
	if err := w.disk.Remove(path); err != nil {
		return fmt.Errorf("checkpoint %s: the file cannot be removed: %w", path, reason(err))
	}
	return nil
}

// removeBoxes removes the boxes of a set without a manifest, as far as it can.
func (w *Writer) removeBoxes(m *manifest) {
	for _, e := range m.Boxes {
		_ = w.remove(e.File) // the next whole set tries again
	}
}

// removeOthers removes the files of all generations but before and the newest whole one, manifests first, so that no
// manifest remains without its files. It leaves those of a greater term, which belong to another process.
func (w *Writer) removeOthers(before generation) error {
	all, err := os.ReadDir(w.directory)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", w.directory, reason(err))
	}
	for _, manifests := range []bool{true, false} {
		for _, f := range all {
			g, is := generationOf(f.Name())
			if !is || g == w.whole || g == before || g.term > w.whole.term || strings.HasPrefix(f.Name(), "manifest-") != manifests {
				continue
			}
			if err := w.remove(f.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
