package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	next      uint64 // generation of the next set
	whole     uint64 // generation of the newest whole set; 0: none
	problem   entry  // zero before the first set
}

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
	return (&Writer{directory: directory, program: program, disk: system{}, next: last + 1}).open()
}

// open locks the directory, and returns an error if another run has locked it or if no file can be created there.
func (w *Writer) open() (*Writer, error) {
	path := filepath.Join(w.directory, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: the file cannot be created: %w", path, reason(err))
	}
	w.locked = f
	if lock(f) {
		f.Close()
		return nil, fmt.Errorf("checkpoint %s: another run writes its checkpoints there; wait until it has ended, "+
			"or give another directory", w.directory)
	}
	last, _, err := generations(w.directory)
	if err == nil && last >= w.next {
		err = fmt.Errorf("checkpoint %s: another run has written a checkpoint there since this one began; resume again",
			w.directory)
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
// succeed. Write keeps the last set and this one, and removes older ones.
func (w *Writer) Write(s *State) error {
	m := &manifest{Generation: w.next, Progress: s.Progress, N: s.N, Cuts: s.Cuts, Flags: s.Flags}
	w.next++
	if err := w.writeProblem(m, s); err != nil {
		return err
	}
	p := problem.Partition{Cuts: s.Cuts}
	for r := range p.Peers() {
		b := p.Box(iterate.Rank(r))
		e, err := w.replace(boxName(m.Generation, r), func(f io.Writer) error { return writeBox(f, s, b) })
		if err != nil {
			return err
		}
		m.Boxes = append(m.Boxes, e)
	}
	if err := w.sync(); err != nil { // the files that the manifest names precede it
		return err
	}
	text, err := m.encode(w.program)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", w.directory, err)
	}
	_, err = w.replace(manifestName(m.Generation), func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		return err
	}
	before := w.whole
	w.whole = m.Generation
	return w.removeOthers(before)
}

// writeProblem writes the problem before the first set, and sets the manifest's entry.
func (w *Writer) writeProblem(m *manifest, s *State) error {
	print := s.Spec.Fingerprint()
	m.Problem.Name, m.Problem.Fingerprint = s.Spec.Name(), hex.EncodeToString(print[:])
	if w.problem.File == "" {
		e, err := w.replace(problemName(print[:]), func(f io.Writer) error {
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

func writeBox(f io.Writer, s *State, b problem.Box) error {
	if _, err := f.Write(header(s.N, b)); err != nil {
		return err
	}
	buffer := make([]byte, min(pieceBytes, blocks.Bytes(b)))
	for at := int64(0); at < blocks.Bytes(b); {
		piece := buffer[:min(int64(len(buffer)), blocks.Bytes(b)-at)]
		if err := blocks.Get(piece, s.U, s.N, b, at); err != nil {
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
	e, err := w.put(name+temporary, write)
	if err != nil {
		return e, err
	}
	e.File = name
	path := filepath.Join(w.directory, name)
	if err := w.disk.Rename(path+temporary, path); err != nil {
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

// removeOthers removes the files of all generations but before and the newest whole one, manifests first, so that no
// manifest remains without its files.
func (w *Writer) removeOthers(before uint64) error {
	all, err := os.ReadDir(w.directory)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", w.directory, reason(err))
	}
	for _, manifests := range []bool{true, false} {
		for _, f := range all {
			g, is := generationOf(f.Name())
			if !is || g == w.whole || g == before || strings.HasPrefix(f.Name(), "manifest-") != manifests {
				continue
			}
			if err := w.remove(f.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
