package cli

import (
	"regexp"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// visible returns text of several lines as spelling.VisibleText does. Colours stay if there are any.
func visible(text []byte, colours bool) []byte {
	return spelling.VisibleText(text, func(text []byte) int {
		if !colours {
			return 0
		}
		return len(colour.Find(text))
	})
}

// colour matches the colours that this program and its log write.
var colour = regexp.MustCompile(`^\x1b\[(0|1|3[0-7]|90)m`)
