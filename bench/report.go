package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// measurement is one line of the table. Value is the median over the rounds, Low
// and High the smallest and largest.
type measurement struct {
	Part   string  `json:"part"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// report is one run of the program.
type report struct {
	Date         time.Time     `json:"date"`
	Commit       string        `json:"commit"`
	Changed      bool          `json:"changed"` // the tree differed from the commit
	Go           string        `json:"go"`
	System       string        `json:"system"`
	Processor    string        `json:"processor"`
	Cores        int           `json:"cores"`
	LoadBefore   string        `json:"load_before"` // averages over 1, 5 and 15 minutes
	LoadAfter    string        `json:"load_after"`
	Rounds       int           `json:"rounds"`
	Measurements []measurement `json:"measurements"`
}

func (r *report) begin(ctx context.Context, root string, rounds int) {
	r.Date, r.Rounds = time.Now().UTC().Truncate(time.Second), rounds
	r.Go, r.System = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	r.Processor, r.Cores = cpuid.CPU.BrandName, runtime.NumCPU()
	r.LoadBefore = load()
	r.Commit = git(ctx, root, "rev-parse", "--short", "HEAD")
	r.Changed = git(ctx, root, "status", "--porcelain", "--untracked-files=no") != ""
}

func (r *report) end() { r.LoadAfter = load() }

func git(ctx context.Context, root string, args ...string) string {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return strings.Join(f[:min(3, len(f))], " ")
}

// add also tells what has been measured: some parts take minutes.
func (r *report) add(m ...measurement) {
	r.Measurements = append(r.Measurements, m...)
	for i := range m {
		fmt.Fprintf(os.Stderr, "  %s: %.4g %s %s\n", m[i].Name, m[i].Value, m[i].Unit, m[i].Note)
	}
}

// over makes a measurement of one value per round.
func over(part, name, unit string, rounds []float64) measurement {
	s := slices.Sorted(slices.Values(rounds))
	n := len(s)
	if n == 0 {
		return measurement{Part: part, Name: name, Unit: unit, Note: "no rounds"}
	}
	return measurement{Part: part, Name: name, Unit: unit, Value: (s[(n-1)/2] + s[n/2]) / 2, Low: s[0], High: s[n-1]}
}

// atLeast and atMost hold the median against a target.
func (m measurement) atLeast(v float64) measurement { return m.judge("≥", v, m.Value >= v) }
func (m measurement) atMost(v float64) measurement  { return m.judge("≤", v, m.Value <= v) }

// lowAtMost and highAtLeast hold the best round against a target: for what other load
// of the machine can only worsen, where the least time is what the program needs.
func (m measurement) lowAtMost(v float64) measurement   { return m.judge("best ≤", v, m.Low <= v) }
func (m measurement) highAtLeast(v float64) measurement { return m.judge("best ≥", v, m.High >= v) }

// between holds the median against two bounds.
func (m measurement) between(low, high float64) measurement {
	m = m.judge("≥", low, m.Value >= low && m.Value <= high)
	m.Target = fmt.Sprintf("%g to %g", low, high)
	return m
}

func (m measurement) judge(sign string, v float64, met bool) measurement {
	m.Target, m.Met = fmt.Sprintf("%s %g", sign, v), &met
	return m
}

func (m measurement) because(note string) measurement {
	m.Note = note
	return m
}

// table is the report as Markdown.
func (r *report) table() string {
	var b strings.Builder
	changed := ""
	if r.Changed {
		changed = " with changes"
	}
	fmt.Fprintf(&b, "# Benchmarks, %s, commit %s%s\n\n", r.Date.Format(time.DateOnly), r.Commit, changed)
	fmt.Fprintf(&b, "%s, %s, %s, %d cores; load before %s, after %s; %d rounds: median, smallest to largest.\n\n",
		r.Go, r.System, r.Processor, r.Cores, r.LoadBefore, r.LoadAfter, r.Rounds)
	b.WriteString("| part | measured | median | spread | unit | target | met |\n|---|---|---|---|---|---|---|\n")
	var notes []string
	for _, m := range r.Measurements {
		met := ""
		if m.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*m.Met]
		}
		name := m.Name
		if m.Note != "" {
			notes = append(notes, m.Note)
			name += fmt.Sprintf(" [%d]", len(notes))
		}
		if m.Unit == "" {
			fmt.Fprintf(&b, "| %s | %s | | | | | |\n", m.Part, name)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %.3g | %.3g to %.3g | %s | %s | %s |\n",
			m.Part, name, m.Value, m.Low, m.High, m.Unit, m.Target, met)
	}
	b.WriteString("\n")
	for i, n := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}

// unused is the name of a record, or that with a number if there is one already: a record of
// other parts at the same commit stays.
func unused(base string) string {
	for name, i := base, 2; ; i++ {
		if _, err := os.Stat(name + ".json"); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

// write records the report as <date>-<commit>.json and .md, with a number after the first.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	base := unused(filepath.Join(dir, r.Date.Format(time.DateOnly)+"-"+cmp.Or(r.Commit, "unknown")))
	if err := os.WriteFile(base+".json", append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(base+".md", []byte(r.table()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "recorded: %s.json and .md\n", base)
	return nil
}
