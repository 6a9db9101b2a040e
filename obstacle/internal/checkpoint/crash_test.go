package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var errCut = errors.New("no space left on device")

// failing is a disk that carries out a number of operations and fails afterwards. crash then loses what a disk may
// lose: data and renames that were not synchronised.
type failing struct {
	left   int // operations that succeed
	random *rand.Rand
	torn   []string    // files with data that was not synchronised
	moved  [][2]string // renames that were not synchronised
}

// unlimited returns a disk that does not fail and, for speed, does not synchronise.
func unlimited() disk { return &failing{left: math.MaxInt} }

// next reports an error for an operation after the last one that succeeds.
func (d *failing) next() error {
	if d.left--; d.left < 0 {
		return errCut
	}
	return nil
}

func (d *failing) Create(name string) (output, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	f, err := os.Create(name)
	d.torn = append(d.torn, name)
	return &cutFile{f, d}, err
}

func (d *failing) Rename(from, to string) error {
	if err := d.next(); err != nil {
		return err
	}
	d.moved = append(d.moved, [2]string{from, to})
	if i := slices.Index(d.torn, from); i >= 0 {
		d.torn[i] = to
	}
	return os.Rename(from, to)
}

func (d *failing) Remove(name string) error {
	if err := d.next(); err != nil {
		return err
	}
	return os.Remove(name)
}

func (d *failing) Sync(string) error {
	if err := d.next(); err != nil {
		return err
	}
	d.moved = nil
	return nil
}

// crash loses some of what was not synchronised.
func (d *failing) crash(t require.TestingT) {
	for _, name := range d.torn {
		i, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.Truncate(name, d.random.Int64N(i.Size()+1)))
	}
	for _, m := range slices.Backward(d.moved) {
		if d.random.IntN(2) == 0 {
			require.NoError(t, os.Rename(m[1], m[0]))
		}
	}
}

type cutFile struct {
	*os.File
	disk *failing
}

func (f *cutFile) Write(b []byte) (int, error) {
	if err := f.disk.next(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *cutFile) Sync() error {
	if err := f.disk.next(); err != nil {
		return err
	}
	f.disk.torn = slices.DeleteFunc(f.disk.torn, func(name string) bool { return name == f.Name() })
	return nil
}

// requireWholeSets requires that every manifest is that of a whole set.
func requireWholeSets(t require.TestingT, directory, what string) {
	_, all, err := generations(directory)
	require.NoError(t, err)
	for _, g := range all {
		f := &Found{Directory: directory, generation: g, Name: filepath.Join(directory, manifestName(g))}
		require.NoError(t, f.read(nil), what)
	}
}

// A write is cut at every operation, by an error or by a crash that loses data. The set before it is then read or,
// if all its files are complete, the new one. A later write succeeds and leaves two sets and nothing else. A crash
// after the write keeps the new set. Every manifest is that of a whole set at any time.
func TestWriteIsCutAtEveryOperation(t *testing.T) {
	before := []int{0, 1, 2}
	if testing.Short() {
		before = []int{2}
	}
	for _, sets := range before {
		for cut, done := 0, false; !done; cut++ {
			for _, crash := range []bool{false, true} {
				directory := filepath.Join(t.TempDir(), "c")
				w, err := Create(directory, "v1")
				require.NoError(t, err)
				w.disk = unlimited()
				for step := range sets {
					require.NoError(t, w.Write(small(t, step)))
				}
				d := &failing{left: cut, random: rand.New(rand.NewPCG(uint64(cut), uint64(sets)))}
				w.disk = d
				what := fmt.Sprintf("%d sets, operation %d, crash %v", sets, cut, crash)
				if err = w.Write(small(t, sets)); err == nil {
					done = true
				} else {
					require.ErrorContains(t, err, "checkpoint "+directory, what)
					require.ErrorContains(t, err, "no space left on device", what)
				}
				if crash {
					d.crash(t)
				}
				requireWholeSets(t, directory, what)
				f, wrong := Open(directory, nil)
				if sets == 0 && wrong != nil {
					require.Error(t, err, what)
					continue
				}
				require.NoError(t, wrong, what)
				if err == nil || f.Step == sets {
					requireState(t, small(t, sets), f)
				} else {
					requireState(t, small(t, sets-1), f)
				}
				if crash {
					w.Close()
					w, err = f.Writer("v2")
					require.NoError(t, err)
				}
				w.disk = unlimited()
				require.NoError(t, w.Write(small(t, 9)), what)
				last, err := Open(directory, nil)
				require.NoError(t, err)
				requireState(t, small(t, 9), last)
				require.LessOrEqual(t, len(names(t, directory)), 2*5+3, what)
			}
		}
	}
}

// full is a disk on which only so many bytes more have room.
type full struct {
	disk
	room int
}

func (d *full) Create(name string) (output, error) {
	f, err := d.disk.Create(name)
	return &fullFile{f, d}, err
}

type fullFile struct {
	output
	disk *full
}

func (f *fullFile) Write(b []byte) (int, error) {
	if f.disk.room -= len(b); f.disk.room < 0 {
		return 0, errCut
	}
	return f.output.Write(b)
}

// A set that finds no room leaves no files, so that the next one has as much.
func TestFullDiskKeepsNoIncompleteSet(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "c")
	w, err := Create(directory, "v1")
	require.NoError(t, err)
	w.disk = unlimited()
	require.NoError(t, w.Write(small(t, 1)))
	require.NoError(t, w.Write(small(t, 2))) // with the other copy of the problem
	before, bytes := names(t, directory), 0
	for _, name := range before {
		i, err := os.Stat(filepath.Join(directory, name))
		require.NoError(t, err)
		bytes += int(i.Size())
	}
	for room := 0; room < bytes; room += 61 {
		w.disk = &full{unlimited(), room}
		if w.Write(small(t, 3)) == nil {
			require.Greater(t, room, bytes/4, "a set without its problem")
			return
		}
		require.Equal(t, before, names(t, directory), "room for %d bytes", room)
	}
	t.Fatal("never written")
}
