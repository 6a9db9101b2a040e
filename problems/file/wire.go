package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/problems"
)

// The encoding of a Spec is magic, a kind, fields with their lengths as uvarint before them, and the SHA-256 of
// all these bytes.
//
//	built-in: 'b' name, count, count × "name=value"
//	file:     'f' file name, text, count, count × (array name, array bytes)
const magic = "p2pdc.problem.1\n"

const (
	kindBuiltin = 'b'
	kindFile    = 'f'
	maxFields   = 16 // settings or arrays of one problem
)

// Marshal returns the encoding of the problem. Equal Specs have equal encodings.
func (s *Spec) Marshal() []byte {
	b := s.body()
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func (s *Spec) body() []byte {
	size := 64 + len(s.text)
	for _, a := range s.arrays {
		size += len(a.name) + len(a.data) + 16
	}
	b := append(make([]byte, 0, size), magic...)
	if s.builtin != nil {
		b = appendField(append(b, kindBuiltin), []byte(s.builtin.Name))
		b = binary.AppendUvarint(b, uint64(len(s.settings)))
		for _, setting := range s.settings {
			b = appendField(b, []byte(setting))
		}
		return b
	}
	b = appendField(append(b, kindFile), []byte(s.name))
	b = appendField(b, s.text)
	b = binary.AppendUvarint(b, uint64(len(s.arrays)))
	for _, a := range s.arrays {
		b = appendField(appendField(b, []byte(a.name)), a.data)
	}
	return b
}

func appendField(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// UnmarshalSpec decodes the bytes of Marshal. The Spec refers to b, which must not change afterwards. Invalid or
// malicious bytes result in an error. Problems that are not files are looked up in the catalog; a nil catalog
// contains the built-in problems.
func UnmarshalSpec(c *problems.Catalog, b []byte) (*Spec, error) {
	body := len(b) - sha256.Size
	if body < len(magic)+1 || !bytes.HasPrefix(b, []byte(magic)) {
		return nil, errors.New("the bytes are not a problem of this program's version")
	}
	if sha256.Sum256(b[:body]) != [sha256.Size]byte(b[body:]) {
		return nil, errors.New("the problem's bytes are damaged or incomplete: their checksum is wrong")
	}
	r := &reader{rest: b[len(magic)+1 : body]}
	switch kind := b[len(magic)]; kind {
	case kindBuiltin:
		name := string(r.field())
		var settings []string
		for range r.count() {
			settings = append(settings, string(r.field()))
		}
		if err := r.end(); err != nil {
			return nil, err
		}
		named, err := lookup(c, name)
		if err != nil {
			return nil, err
		}
		return configured(named, settings)
	case kindFile:
		return r.file()
	default:
		return nil, fmt.Errorf("the problem's bytes are of an unknown kind %q", kind)
	}
}

func (r *reader) file() (*Spec, error) {
	name, text := string(r.field()), r.field()
	var arrays []attachment
	for range r.count() {
		arrays = append(arrays, attachment{string(r.field()), r.field()})
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	s, err := Parse(name, text, func(array string) ([]byte, error) {
		if data, found := find(arrays, array); found {
			return data, nil
		}
		return nil, errors.New("the problem's bytes do not contain the array")
	})
	if err != nil {
		return nil, err
	}
	if len(s.arrays) != len(arrays) {
		return nil, errors.New("the problem's bytes contain an array that the problem file does not name")
	}
	return s, nil
}

// reader decodes fields. After a malformed field all others are empty.
type reader struct {
	rest      []byte
	malformed bool
}

// uvarint decodes a number of at most most.
func (r *reader) uvarint(most int) int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(most) {
		r.malformed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) field() []byte {
	n := r.uvarint(len(r.rest))
	if n > len(r.rest) {
		r.malformed, n = true, len(r.rest)
	}
	f := r.rest[:n:n]
	r.rest = r.rest[n:]
	return f
}

func (r *reader) count() int { return r.uvarint(maxFields) }

func (r *reader) end() error {
	if r.malformed || len(r.rest) > 0 {
		return errors.New("the problem's bytes are malformed")
	}
	return nil
}
