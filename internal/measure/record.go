package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// Record is what one run of a part measured. A part has one record for each kind of machine:
// writing a record replaces the older one, which remains in the history of the repository.
type Record struct {
	Part       string    `json:"part"`
	Date       time.Time `json:"date"`
	Commit     string    `json:"commit"`
	Changed    bool      `json:"changed"` // the tree differed from the commit
	Go         string    `json:"go"`
	System     string    `json:"system"`
	Processor  string    `json:"processor"`
	Cores      int       `json:"cores"`
	LoadBefore string    `json:"load_before"` // averages over 1, 5 and 15 minutes
	LoadAfter  string    `json:"load_after"`
	Rounds     int       `json:"rounds"`
	Seconds    float64   `json:"seconds,omitempty"` // that the part took; older records lack it
	// Sources are checksums of the sources that the part measures, by directory; older records lack them.
	Sources map[string]string `json:"sources,omitempty"`
	Results []Result          `json:"results"`

	dir string // of the record that was read
}

// newRecord returns the record of a part that is about to run in the tree at root.
func newRecord(ctx context.Context, root, part string, rounds int) *Record {
	return &Record{
		Part: part, Date: time.Now().UTC().Truncate(time.Second), Rounds: rounds,
		Commit:  git(ctx, root, "rev-parse", "--short", "HEAD"),
		Changed: git(ctx, root, "status", "--porcelain", "--untracked-files=no") != "",
		Go:      runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Processor: cpuid.CPU.BrandName, Cores: runtime.NumCPU(),
		LoadBefore: load(),
	}
}

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

var (
	trademark = regexp.MustCompile(`\((R|TM|r|tm)\)|\b(CPU|Processor)\b`)
	separator = regexp.MustCompile(`[^a-z0-9]+`)
)

// machine returns the kind of machine: processor and number of cores.
func (r *Record) machine() string {
	name := strings.Join(strings.Fields(trademark.ReplaceAllString(r.Processor, "")), " ")
	return fmt.Sprintf("%s, %d cores", cmp.Or(name, "unknown"), r.Cores)
}

// file returns the name of the record's file, which is unique to a part and kind of machine.
func (r *Record) file() string {
	return r.Part + "-" + strings.Trim(separator.ReplaceAllString(strings.ToLower(r.machine()), "-"), "-") + ".json"
}

// write replaces the record of the same part and kind of machine in a directory, and returns its file.
func (r *Record) write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, r.file())
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return "", err
	}
	return path, nil
}

// readRecords returns the records of directories by part, the newest of a part first. A file of JSON that
// is not named after its part and kind of machine is an error: there is one record of each.
func readRecords(dirs ...string) (map[string][]*Record, error) {
	out := map[string][]*Record{}
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if filepath.Ext(f.Name()) != ".json" {
				continue // the page of a part
			}
			path := filepath.Join(dir, f.Name())
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			r := &Record{dir: dir}
			if err := json.Unmarshal(data, r); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if r.file() != f.Name() {
				return nil, fmt.Errorf("%s: a record of part %q on this kind of machine is named %s", path, r.Part, r.file())
			}
			out[r.Part] = append(out[r.Part], r)
		}
	}
	for _, records := range out {
		slices.SortFunc(records, func(a, b *Record) int { return b.Date.Compare(a.Date) })
	}
	return out, nil
}
