package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visible returns text without characters that a terminal obeys: those that move its cursor, set its title or turn the order of its
// text. Names of files, arrays, clusters and hosts may hold them. They become escapes of JSON, which mean the same in the strings
// of JSON. Line ends and tabs stay, and colours if there are any.
func visible(text []byte, colours bool) []byte {
	if !bytes.ContainsFunc(text, obeyed) && utf8.Valid(text) {
		return text
	}
	var out bytes.Buffer
	for len(text) > 0 {
		if n := len(colour.Find(text)); colours && n > 0 {
			out.Write(text[:n])
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		high, low := utf16.EncodeRune(r)
		switch {
		case !obeyed(r):
			out.WriteRune(r)
		case high != utf8.RuneError:
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// shown is visible for a name.
func shown(name string) string { return string(visible([]byte(name), false)) }

// obeyed reports whether a terminal may obey a character.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// colour matches the colours that this program and its log write.
var colour = regexp.MustCompile(`^\x1b\[(0|1|3[0-7]|90)m`)
