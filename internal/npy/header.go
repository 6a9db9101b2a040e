package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const magic = "\x93NUMPY"

// alignment is the alignment of the data in bytes, as in NumPy.
const alignment = 64

type header struct {
	descr   string
	fortran bool
	shape   []int
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

// parseHeader parses the Python dictionary {'descr': …, 'fortran_order': …, 'shape': (…)} with its keys in any order.
func parseHeader(text string) (header, error) {
	var h header
	bad := fmt.Errorf("the header %.80q is not the dictionary of a plain array", strings.TrimSpace(text))
	rest, ok := after(text, "{")
	seen := map[string]bool{}
	for ok && !strings.HasPrefix(rest, "}") {
		var key, value string
		if key, rest, ok = quoted(rest); !ok || seen[key] {
			return h, bad
		}
		seen[key] = true
		if rest, ok = after(rest, ":"); !ok {
			return h, bad
		}
		switch key {
		case "descr":
			h.descr, rest, ok = quoted(rest)
			if !ok {
				return h, errors.New("the array has records, not numbers, as entries")
			}
		case "fortran_order":
			value, _, _ = strings.Cut(rest, ",")
			value = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(value), "}"))
			h.fortran = value == "True"
			if value != "True" && value != "False" {
				return h, bad
			}
			rest, ok = after(rest, value)
		case "shape":
			h.shape, rest, ok = tuple(rest)
		default:
			return h, bad
		}
		if !ok {
			return h, bad
		}
		if next, comma := after(rest, ","); comma {
			rest = next
		} else if !strings.HasPrefix(rest, "}") {
			return h, bad
		}
	}
	if !ok || len(seen) != 3 || strings.TrimSpace(rest) != "}" {
		return h, bad
	}
	return h, nil
}

// after returns s without a leading mark and the white space around it.
func after(s, mark string) (string, bool) {
	s, ok := strings.CutPrefix(strings.TrimLeft(s, " \n"), mark)
	return strings.TrimLeft(s, " \n"), ok
}

func quoted(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", s, false
	}
	value, rest, ok = strings.Cut(s[1:], s[:1])
	return value, strings.TrimLeft(rest, " \n"), ok
}

func tuple(s string) (shape []int, rest string, ok bool) {
	s, ok = after(s, "(")
	if !ok {
		return nil, s, false
	}
	inside, rest, ok := strings.Cut(s, ")")
	if !ok {
		return nil, s, false
	}
	parts := strings.Split(inside, ",")
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" && i == len(parts)-1 {
			break
		}
		n, err := strconv.ParseUint(part, 10, 62)
		if err != nil || len(shape) == maxAxes {
			return nil, s, false
		}
		shape = append(shape, int(n))
	}
	return shape, strings.TrimLeft(rest, " \n"), true
}

// Header returns the header of a file of little-endian float64 values: version 1.0, with the values aligned
// to 64 bytes.
func Header(shape []int) []byte {
	var t strings.Builder
	t.WriteString("{'descr': '<f8', 'fortran_order': False, 'shape': (")
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
