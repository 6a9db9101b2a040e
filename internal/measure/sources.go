package measure

import (
	"crypto/sha256"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// partSources returns the directories whose sources decide the figures of a part, with those below them. A record has
// their checksums, so that a test finds headlines that are older than what they measure. Parts that no document quotes
// as a headline have none.
func partSources(part string) []string {
	protocol := []string{"ether", "microproto", "p2psap"}
	multigrid := []string{"internal/kernel", "solver/multilevel", "solver/problem"}
	iterations := []string{
		"internal/virtual", "microproto", "p2psap", "internal/exchange", "solver/iterate", "solver/problem", "solver/richardson",
	}
	clusters := append(slices.Clip(iterations), "simulate")
	methods := []string{"internal/kernel", "solver/multilevel", "solver/schwarz"}
	simulator := append(append(slices.Clip(iterations), methods...), "internal/sim") // without descriptions of clusters
	processes := append(slices.Clip(protocol), "internal/kernel", "obstacle", "shm", "solver")
	return map[string][]string{
		"age":        protocol,
		"best":       simulator,
		"copies":     processes,
		"efficiency": clusters,
		"faults":     clusters,
		"goodput":    protocol,
		"shares":     protocol,
		"kernels":    {"internal/kernel"},
		"localhost":  append(slices.Clip(processes), "internal/virtual", "simulate"),
		"losses":     append(append(slices.Clip(clusters), methods...), "internal/repair"),
		"map":        clusters,
		"memory":     processes,
		"multigrid":  multigrid,
		"parts":      processes,
		"petsc":      multigrid,
		"published":  append(slices.Clip(clusters), "experiments/internal/published"),
		"schemes":    simulator,
		"schwarz":    simulator,
		"simulator":  clusters,
		"speedup":    processes,
		"survive":    processes,
		"transport":  append(slices.Clip(protocol), "shm"),
		"whatif":     append(slices.Clip(clusters), methods...),
	}[part]
}

// sources has the checksums of directories of the module at root, each computed once.
type sources struct {
	root string
	sums map[string]string
}

// of returns the checksums of the sources of a part by directory.
func (s *sources) of(part string) (map[string]string, error) {
	if s.sums == nil {
		s.sums = map[string]string{}
	}
	out := map[string]string{}
	for _, dir := range partSources(part) {
		if s.sums[dir] == "" {
			sum, err := checksum(filepath.Join(s.root, dir))
			if err != nil {
				return nil, err
			}
			s.sums[dir] = sum
		}
		out[dir] = s.sums[dir]
	}
	return out, nil
}

// checksum returns a checksum of all files below a directory but tests, in the order of their names. Comments and the
// layout of Go files do not count.
func checksum(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && name == "testdata":
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".go" {
			text = tokens(text)
		}
		fmt.Fprintf(h, "%s %d\n%s\n", filepath.ToSlash(below), len(text), text)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("checksum of sources: %w", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), nil
}

// tokens returns the tokens of a Go file, without comments.
func tokens(text []byte) []byte {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	var out []byte
	for {
		_, t, literal := s.Scan()
		if t == token.EOF {
			return out
		}
		if t == token.SEMICOLON {
			literal = ";" // written or at the end of a line
		}
		out = fmt.Appendf(out, "%v %s\n", t, literal)
	}
}

// changedSince returns the directories of a part whose sources have changed since the record, all if it has none.
func (r *Record) changedSince(s *sources) ([]string, error) {
	now, err := s.of(r.Part)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(now, func(dir, sum string) bool { return r.Sources[dir] == sum })
	return slices.Sorted(maps.Keys(now)), nil
}
