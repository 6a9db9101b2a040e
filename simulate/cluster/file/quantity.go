package file

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// unit is 10^ten × factor of the unit in which a quantity is kept.
type unit struct {
	name   string
	ten    int
	factor float64 // a power of two, so that values survive writing and reading; 0: 1
	reads  bool    // it is read, but never written
}

// measure is the kind of a quantity, with its units.
type measure struct {
	of      string // "a time"
	example string
	units   []unit
}

const kibi = 1 << 10

// The measures of a description. Times are kept in nanoseconds, ratios as parts of one.
func times() measure {
	return measure{"a time", "20 us", []unit{
		{name: "ns"}, {name: "us", ten: 3}, {name: "ms", ten: 6}, {name: "s", ten: 9},
		{name: "µs", ten: 3, reads: true}, {name: "μs", ten: 3, reads: true},
		{name: "min", ten: 9, factor: 60, reads: true}, {name: "h", ten: 9, factor: 3600, reads: true},
	}}
}

func sizes() measure {
	return measure{"a size", "128 KiB", []unit{
		{name: "B"}, {name: "kB", ten: 3}, {name: "MB", ten: 6}, {name: "GB", ten: 9},
		{name: "KiB", factor: kibi}, {name: "MiB", factor: kibi * kibi}, {name: "GiB", factor: kibi * kibi * kibi},
	}}
}

func rates() measure {
	return measure{"a rate", "1 Gbit/s", []unit{
		{name: "B/s"}, {name: "kB/s", ten: 3}, {name: "MB/s", ten: 6}, {name: "GB/s", ten: 9},
		{name: "KiB/s", factor: kibi}, {name: "MiB/s", factor: kibi * kibi}, {name: "GiB/s", factor: kibi * kibi * kibi},
		{name: "bit/s", factor: 1. / 8}, {name: "kbit/s", ten: 3, factor: 1. / 8}, {name: "Mbit/s", ten: 6, factor: 1. / 8},
		{name: "Gbit/s", ten: 9, factor: 1. / 8},
	}}
}

func relaxations() measure {
	return measure{"a rate of relaxation", "0.33 Gpoint/s", []unit{
		{name: "point/s"}, {name: "kpoint/s", ten: 3}, {name: "Mpoint/s", ten: 6}, {name: "Gpoint/s", ten: 9},
	}}
}

func ratios() measure { return measure{"a share", "2 %", []unit{{name: "%", ten: -2}}} }

func frequencies() measure {
	return measure{"a frequency", "0.5 /s", []unit{{name: "/s"}}}
}

var quantity = regexp.MustCompile(`^(-?[0-9]*\.?[0-9]*)(?:[eE]([-+]?[0-9]{1,6}))?\s*(.*)$`)

// bitsPerSecond matches common spellings of bit rates; B is a byte.
var bitsPerSecond = regexp.MustCompile(`^([kMG]?)b(?:/s|ps|it)$`)

// parse reads a number with a unit.
func (m measure) parse(text string) (float64, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil || !strings.ContainsAny(parts[1], "0123456789") {
		return 0, fmt.Errorf("%q is not %s; write a number with a unit, as %q", text, m.of, m.example)
	}
	mantissa, name := parts[1], parts[3]
	if name == "" {
		return 0, fmt.Errorf("%s has no unit; write %s with one, as %q", text, m.of, m.example)
	}
	var known []string
	for _, u := range m.units {
		if u.name != name {
			if !u.reads {
				known = append(known, u.name)
			}
			continue
		}
		ten := 0
		if parts[2] != "" {
			ten, _ = strconv.Atoi(parts[2]) // six digits
		}
		v, err := strconv.ParseFloat(fmt.Sprintf("%se%d", mantissa, ten+u.ten), 64)
		if err != nil {
			return 0, fmt.Errorf("%s is out of range", text)
		}
		return v * u.scale(), nil
	}
	guess := spelling.Suggest(name, known)
	if bits := bitsPerSecond.ReplaceAllString(name, "${1}bit/s"); slices.Contains(known, bits) {
		guess = fmt.Sprintf(" (did you mean %q?)", bits)
	}
	return 0, fmt.Errorf("unknown unit %q%s; the units of %s are %s", name, guess, m.of, strings.Join(known, ", "))
}

// whole reads a quantity that is a whole number of its smallest part, least.
func (m measure) whole(text, least string) (int64, error) {
	v, err := m.parse(text)
	switch {
	case err != nil:
		return 0, err
	case v != math.Trunc(v):
		return 0, fmt.Errorf("%s is not a whole number of %s", text, least)
	case math.Abs(v) > 1<<53:
		return 0, errors.New(text + " is out of range")
	}
	return int64(v), nil
}

func (u unit) scale() float64 { return cmp.Or(u.factor, 1) }

// format returns v with the unit that takes the fewest characters; of several, the largest; and
// without a power of ten if possible. parse returns v again, to the last bit.
func (m measure) format(v float64) string {
	length := func(s string) int { return len(s) + strings.Count(s, ".") + 8*strings.Count(s, "e") }
	best, shortest := "", 0
	for _, u := range m.units {
		if u.reads {
			continue
		}
		if s := decimal(v/u.scale(), u.ten); best == "" || length(s)+len(u.name) <= shortest {
			best, shortest = s+" "+u.name, length(s)+len(u.name)
		}
	}
	return best
}

// decimal returns v·10^−ten exactly, as short as v can be written.
func decimal(v float64, ten int) string {
	if v == 0 {
		return "0"
	}
	text := strconv.FormatFloat(v, 'e', -1, 64) // d.ddde±xx
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	mantissa, exponent, _ := strings.Cut(text, "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	point, _ := strconv.Atoi(exponent)
	point += 1 - ten // digits before the point
	switch {
	case point > 15 || point < -3:
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return fmt.Sprintf("%s%se%d", sign, digits, point-1)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	}
	return sign + digits[:point] + "." + digits[point:]
}
