package measure

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const header = "| what | ours | peer or limit | ratio | spread | target | machine | commit | date |\n" +
	"|---|---|---|---|---|---|---|---|---|\n"

// table returns the records of a part as Markdown, one row for each result.
func table(records []*Record) string {
	var b strings.Builder
	var notes []string
	b.WriteString(header)
	for _, r := range records {
		for i := range r.Results {
			notes = r.Results[i].row(&b, r, notes)
		}
	}
	b.WriteString("\n")
	for i, n := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, r := range records {
		fmt.Fprintf(&b, "%s: rounds %d, load before %s, after %s, %s.\n",
			r.machine(), r.Rounds, r.LoadBefore, r.LoadAfter, r.Go)
	}
	return b.String()
}

// row writes the row of a result that is no detail, and returns the notes with its own added.
func (r *Result) row(b *strings.Builder, of *Record, notes []string) []string {
	if r.Detail {
		return notes
	}
	name := r.Name
	if r.Note != "" {
		if !slices.Contains(notes, r.Note) {
			notes = append(notes, r.Note)
		}
		name += fmt.Sprintf(" [%d]", slices.Index(notes, r.Note)+1)
	}
	value, peers, ratio := r.values()
	spread := ""
	if r.Unit != "" {
		spread = number(r.Low) + " to " + number(r.High)
	}
	commit := of.Commit
	if of.Changed {
		commit += " with changes"
	}
	cells := []string{
		name, value, peers, ratio, spread, r.goal(),
		of.machine(), commit, of.Date.Format(time.DateOnly),
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	return notes
}

// values returns the cells of the value, of what it is compared with, and of the ratios.
func (r *Result) values() (value, peers, ratio string) {
	var names, ratios []string
	for _, p := range r.Peers {
		names = append(names, p.Name+" "+number(p.Value))
		ratios = append(ratios, number(p.Ratio))
	}
	if r.Unit != "" {
		value = number(r.Value) + " " + r.Unit
	}
	return value, strings.Join(names, "; "), strings.Join(ratios, "; ")
}

// goal returns the cell of the target.
func (r *Result) goal() string {
	if r.Met != nil && !*r.Met {
		return r.Target + ": **not met**"
	}
	return r.Target
}

// number writes three significant digits, without an exponent from 0.001 to below 10⁹.
func number(v float64) string {
	size := math.Abs(v)
	if v == 0 || size >= 1e9 || size < 1e-3 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(size)))
	if digits <= 0 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', digits, 64), "0"), ".")
}

var section = regexp.MustCompile(`(?s)<!-- ([\w-]+): begin -->\n(.*?)<!-- ([\w-]+): end -->`)

// Fill replaces the text between the comments <!-- NAME: begin --> and <!-- NAME: end -->. Every
// section must have such a pair of comments; other pairs are left as they are.
func Fill(text string, sections map[string]string) (string, error) {
	filled := map[string]bool{}
	var err error
	out := section.ReplaceAllStringFunc(text, func(old string) string {
		m := section.FindStringSubmatch(old)
		if m[1] != m[3] && err == nil {
			err = fmt.Errorf("section %s is followed by the end of section %s", m[1], m[3])
		}
		body, ok := sections[m[1]]
		if !ok {
			return old
		}
		filled[m[1]] = true
		return fmt.Sprintf("<!-- %s: begin -->\n%s<!-- %[1]s: end -->", m[1], body)
	})
	for name := range sections {
		if !filled[name] && err == nil {
			err = fmt.Errorf("section %q is missing: add the comments <!-- %[1]s: begin --> and <!-- %[1]s: end -->", name)
		}
	}
	return out, err
}

// FillFile replaces sections of a file.
func FillFile(path string, sections map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := Fill(string(text), sections)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(out), 0o644)
}
