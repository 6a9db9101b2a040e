package spelling

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a name, of a file, problem, method, cluster or host, for one line of a text or table: characters that a
// terminal obeys, line ends and tabs become escapes of JSON, and bytes that are no UTF-8 become escapes such as \xff.
func Visible(name string) string {
	return string(visible([]byte(name), func(r rune) bool { return r == '\n' || r == '\t' || Obeyed(r) }, nil))
}

// VisibleText does the same to text of several lines: line ends and tabs stay, and so does what skip returns the length of
// at the begin of a text. The escapes of JSON mean the same in its strings.
func VisibleText(text []byte, skip func(text []byte) int) []byte { return visible(text, Obeyed, skip) }

func visible(text []byte, obeyed func(r rune) bool, skip func(text []byte) int) []byte {
	if !bytes.ContainsFunc(text, obeyed) && utf8.Valid(text) {
		return text
	}
	var out bytes.Buffer
	for len(text) > 0 {
		if skip != nil {
			if n := skip(text); n > 0 {
				out.Write(text[:n])
				text = text[n:]
				continue
			}
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case !obeyed(r):
			out.WriteRune(r)
		case r > 0xffff: // JSON has escapes of 16 bits
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out.Bytes()
}

// Obeyed reports whether a terminal may obey a character of a line: those that move its cursor, set its title or turn the
// order of its text.
func Obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Quote quotes a word for a POSIX shell.
func Quote(s string) string {
	safe := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./:,=+%@", c)
	}
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !safe(c) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Word quotes a word of a command that is shown, for bash in one line if it is not visible.
func Word(s string) string {
	if Visible(s) == s {
		return Quote(s)
	}
	return "$'" + Visible(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)) + "'"
}

// File is Word for the name of a file that is an argument of its own: one that begins with a dash would be a flag.
func File(name string) string {
	if strings.HasPrefix(name, "-") && name != "-" {
		name = "./" + name
	}
	return Word(name)
}
