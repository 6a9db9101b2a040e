package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Version is that of the manifest. A program reads manifests of its own version only.
const Version = 1

// Bounds of what a manifest may name.
const (
	maxManifest = 8 << 20 // bytes; a box takes about 200
	maxProblem  = file.MaxTextBytes + file.MaxArrayBytes + 1<<20
)

// envelope is the JSON of a manifest. Its first two fields have this form in every version.
type envelope struct {
	Version    int             `json:"version"`
	Program    string          `json:"program"` // version of the program that wrote it
	SHA256     string          `json:"sha256"`  // of the bytes of Checkpoint
	Checkpoint json.RawMessage `json:"checkpoint"`
}

type manifest struct {
	Generation uint64 `json:"generation"`
	Term       uint64 `json:"term,omitempty"` // of the writer
	Progress
	Problem struct {
		Name        string `json:"name"` // for the reader of the manifest
		Fingerprint string `json:"fingerprint"`
		entry
	} `json:"problem"`
	N     [3]int            `json:"n"` // interior points of the grid, x first
	Cuts  [3][]int          `json:"cuts"`
	Flags map[string]string `json:"flags"`
	Boxes []entry           `json:"boxes"` // by rank; then those of the best iterate, if there is one
}

// entry describes a file of the set.
type entry struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (m *manifest) generation() generation { return generation{m.Term, m.Generation} }

// encode returns the bytes of the manifest file.
func (m *manifest) encode(program string) ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	by, err := json.Marshal(program)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, "{\n\"version\": %d,\n\"program\": %s,\n\"sha256\": %q,\n\"checkpoint\": %s\n}\n", Version, by,
		checksum(body), body)
	if len(out) > maxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes for %d boxes; it may have %d", len(out), len(m.Boxes), maxManifest)
	}
	return out, nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// newerVersion is the error of a manifest of a newer version.
type newerVersion struct {
	version int
	program string
}

func (e *newerVersion) Error() string {
	return fmt.Sprintf("the manifest has version %d, and this program reads version %d; it was written by obstacle %.40q: "+
		"resume the run with that program", e.version, Version, e.program)
}

// decode decodes the manifest of a generation. Invalid bytes result in an error, which does not name the file.
func decode(g generation, text []byte) (*manifest, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("it is not a manifest: %w", err)
	}
	switch {
	case e.Version > Version:
		return nil, &newerVersion{e.Version, e.Program}
	case e.Version != Version:
		return nil, fmt.Errorf("it is not a manifest: it has version %d", e.Version)
	}
	if got := checksum(e.Checkpoint); got != e.SHA256 {
		return nil, fmt.Errorf("its SHA-256 is %.16s, and it states %.16s: it was edited or is incomplete", got, e.SHA256)
	}
	d := json.NewDecoder(bytes.NewReader(e.Checkpoint))
	d.DisallowUnknownFields()
	m := &manifest{}
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("it is not a manifest: %w", err)
	}
	if m.generation() != g {
		return nil, fmt.Errorf("it is of generation %v, not %v: it was renamed", m.generation(), g)
	}
	return m, m.check()
}

// check validates what the manifest names.
func (m *manifest) check() error {
	if err := problems.CheckGrid(len(m.N), m.N); err != nil {
		return err
	}
	p := problem.Partition{Cuts: m.Cuts}
	if err := p.Validate(m.N); err != nil {
		return err
	}
	print, err := hex.DecodeString(m.Problem.Fingerprint)
	switch {
	case err != nil || len(print) != sha256.Size:
		return errors.New("it has no fingerprint of the problem")
	case m.Problem.File != problemName(print, false) && m.Problem.File != problemName(print, true),
		m.Problem.Bytes < 0 || m.Problem.Bytes > maxProblem:
		return fmt.Errorf("it names a problem in %q with %d bytes", m.Problem.File, m.Problem.Bytes)
	case m.Step < 0 || m.Step >= problem.MaxSteps:
		return fmt.Errorf("it is of time step %d", m.Step)
	case len(m.Boxes) != p.Peers() && len(m.Boxes) != 2*p.Peers():
		return fmt.Errorf("it names %d boxes of %d", len(m.Boxes), p.Peers())
	}
	for r, e := range m.Boxes {
		b := p.Box(iterate.Rank(r % p.Peers()))
		if e.File != boxName(m.generation(), r) || e.Bytes != int64(len(header(m.N, b)))+blocks.Bytes(b) {
			return fmt.Errorf("it names box %d in %q with %d bytes", r, e.File, e.Bytes)
		}
	}
	return nil
}
