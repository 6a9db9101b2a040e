package cli

import (
	"io"
	"os"
)

// style is an SGR parameter of ECMA-48.
type style string

const (
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// painter returns a text in a style, or the text alone where there are no colours.
type painter func(s style, text string) string

func plain(_ style, text string) string { return text }

// painter returns the painter for what is written to w.
func (a *app) painter(w io.Writer) painter {
	if !a.colours(w) {
		return plain
	}
	return func(s style, text string) string { return "\x1b[" + string(s) + "m" + text + "\x1b[0m" }
}

// colours reports whether what is written to w has colours.
func (a *app) colours(w io.Writer) bool {
	return coloured(a.colour, terminal(w), os.Getenv("NO_COLOR"), os.Getenv("TERM"))
}

// coloured reports whether output has colours, by --color, the kind of output, NO_COLOR (no-color.org) and TERM.
func coloured(word string, terminal bool, noColour, term string) bool {
	switch word {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && noColour == "" && term != "dumb"
}
