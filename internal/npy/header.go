package npy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const magic = "\x93NUMPY"

// alignment is the alignment of the data in bytes, as in NumPy.
const alignment = 64

// header is the dictionary of a file. A nil field is missing.
type header struct {
	Descr   *string `json:"descr"`
	Fortran *bool   `json:"fortran_order"`
	Shape   []uint  `json:"shape"`
}

// split returns the text of the header and the data after it.
func split(file []byte) (text string, data []byte, err error) {
	if !bytes.HasPrefix(file, []byte(magic)) {
		return "", nil, errors.New("this is not a .npy file: it does not start with \\x93NUMPY")
	}
	rest := file[len(magic):]
	if len(rest) < 2 {
		return "", nil, errors.New("the file ends within its header")
	}
	major, minor := rest[0], rest[1]
	rest = rest[2:]
	lengthBytes := 4
	if major == 1 {
		lengthBytes = 2
	}
	if major < 1 || major > 3 || minor != 0 {
		return "", nil, fmt.Errorf("version %d.%d of the .npy format is not known", major, minor)
	}
	if len(rest) < lengthBytes {
		return "", nil, errors.New("the file ends within its header")
	}
	length := uint64(binary.LittleEndian.Uint16(rest))
	if lengthBytes == 4 {
		length = uint64(binary.LittleEndian.Uint32(rest))
	}
	rest = rest[lengthBytes:]
	if length > uint64(len(rest)) {
		return "", nil, errors.New("the file ends within its header")
	}
	return string(rest[:length]), rest[length:], nil
}

// parseHeader parses the Python dictionary {'descr': …, 'fortran_order': …, 'shape': (…)}, with keys in any order.
// As JSON it has other brackets, quotes and constants, and no comma before a closing bracket.
func parseHeader(text string) (header, error) {
	text = strings.TrimSpace(text)
	h := header{}
	d := json.NewDecoder(strings.NewReader(lastComma.ReplaceAllString(strings.NewReplacer(
		"'", `"`, "(", "[", ")", "]", "True", "true", "False", "false").Replace(text), "$1$2")))
	d.DisallowUnknownFields()
	err := d.Decode(&h)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field == "descr":
		return h, errors.New("the array has records, not numbers, as entries")
	case err != nil || d.More() || h.Descr == nil || h.Fortran == nil || h.Shape == nil || len(h.Shape) > maxAxes,
		strings.Count(text, ":") != 3: // a key occurs twice
		return h, fmt.Errorf("the header %.80q is not the dictionary of a plain array", text)
	}
	return h, nil
}

// lastComma matches the comma after the last entry of a list.
var lastComma = regexp.MustCompile(`\b,\s*(\])|,\s*(})`)

// Header returns the header of a file of little-endian float64 values.
func Header(shape []int) []byte { return HeaderOf("<f8", shape) }

// HeaderOf returns the header of a file of values of NumPy's type descr, such as "|u1": version 1.0, with the values
// aligned to 64 bytes.
func HeaderOf(descr string, shape []int) []byte {
	var t strings.Builder
	fmt.Fprintf(&t, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr)
	for _, n := range shape {
		fmt.Fprintf(&t, "%d, ", n)
	}
	text := strings.TrimSuffix(t.String(), " ")
	if len(shape) > 1 {
		text = strings.TrimSuffix(text, ",")
	}
	text += "), }"
	start := len(magic) + 4
	text += strings.Repeat(" ", alignment-1-(start+len(text))%alignment) + "\n"
	file := append([]byte(magic), 1, 0)
	file = binary.LittleEndian.AppendUint16(file, uint16(len(text)))
	return append(file, text...)
}
