package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

var (
	commandSection = regexp.MustCompile("(?m)^## (?:`obstacle ([a-z]+)[^`]*`.*|.*)$")
	flagSpan       = regexp.MustCompile("`--([a-z][a-z-]*)[^`]*`")
)

// TestFlagTables compares docs/cli.md with the commands: each flag of a table is one of the command, with the default that
// the table states, and the page names every flag of every command.
func TestFlagTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	page := string(text)
	root := (&app{catalog: catalog.New()}).root()
	all := commandSection.FindAllStringSubmatchIndex(page, -1)
	rows := 0
	for i, m := range all {
		if m[2] < 0 {
			continue // no command
		}
		end := len(page)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		command, _, err := root.Find([]string{page[m[2]:m[3]]})
		require.NoError(t, err)
		rows += compareFlags(t, command, page[m[1]:end])
	}
	require.Greater(t, rows, 100)
	for _, c := range commandsBelow(root) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && f.Name != "help-all" && !named(page, f.Name) {
				t.Errorf("%s: docs/cli.md does not name the flag --%s", c.CommandPath(), f.Name)
			}
		})
	}
}

// named reports whether a page names a flag.
func named(page, flag string) bool {
	return regexp.MustCompile("--" + flag + "(?:[^a-z-]|$)").MatchString(page)
}

func commandsBelow(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			out = append(out, commandsBelow(sub)...)
		}
	}
	return out
}

// compareFlags compares the tables of flags in the section of a command, and returns the number of their rows.
func compareFlags(t *testing.T, c *cobra.Command, section string) (rows int) {
	head := ""
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") {
			if !strings.HasPrefix(line, "|---") {
				head = ""
			}
			continue
		}
		if head == "" {
			head = line
			continue
		}
		if !strings.HasPrefix(head, "| flag |") {
			continue
		}
		rows++
		cells := strings.Split(line, " | ")
		flags := flagSpan.FindAllStringSubmatch(cells[0], -1)
		var defaults []string
		if strings.HasPrefix(head, "| flag | default |") {
			defaults = strings.Split(cells[1], ", ")
		}
		for i, m := range flags {
			f := flagOf(c, m[1])
			if f == nil {
				t.Errorf("docs/cli.md: obstacle %s has no flag --%s", c.Name(), m[1])
			} else if len(defaults) == len(flags) && !sameDefault(defaults[i], f.DefValue, f.Usage) {
				t.Errorf("docs/cli.md: obstacle %s --%s: default %q, but the program's is %q", c.Name(), m[1], defaults[i], f.DefValue)
			}
		}
	}
	return rows
}

// flagOf returns a flag of a command or of those below it.
func flagOf(c *cobra.Command, name string) *pflag.Flag {
	for _, c := range commandsBelow(c) {
		if f := c.Flag(name); f != nil {
			return f
		}
	}
	return nil
}

// sameDefault reports whether a cell states a default: itself, or in words what the program chooses if the flag has no
// value. The help then states a number.
func sameDefault(cell, value, help string) bool {
	cell = strings.Trim(cell, "`")
	if a, err := time.ParseDuration(cell); err == nil {
		b, err := time.ParseDuration(value)
		return err == nil && a == b
	}
	if a, err := strconv.ParseFloat(cell, 64); err == nil {
		b, err := strconv.ParseFloat(strings.Trim(value, "[]"), 64)
		return err == nil && (a == b || b == 0 && strings.Contains(help, cell))
	}
	return cell == value || slices.Contains([]string{"", "[]", "0", "0s", "false", "auto"}, value)
}

func TestSameDefault(t *testing.T) {
	for _, same := range [][2]string{{"1m", "1m0s"}, {"64", "[64]"}, {"1e-6", "1e-06"}, {"off", "false"}, {"chosen", "0"}, {"`ssh -x`", "ssh -x"}} {
		require.True(t, sameDefault(same[0], same[1], ""), "%v", same)
	}
	for _, differ := range [][2]string{{"3", "5"}, {"1s", "100ms"}, {"on", "off"}, {"chosen", "4"}} {
		require.False(t, sameDefault(differ[0], differ[1], "1 to 5"), "%v", differ)
	}
}

// TestAnswerFields compares the fields of the answer of solve with docs/cli.md: it names each of them, and its table has no
// others.
func TestAnswerFields(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	fields := map[string]bool{}
	jsonFields(reflect.TypeFor[report.Solution](), fields)
	for name := range fields {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("docs/cli.md does not name the field %s of the answer", name)
		}
	}
	_, section, found := strings.Cut(string(text), "### The answer\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	_, section, found = strings.Cut(section, "| field | |\n")
	require.True(t, found)
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line, " | ")
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
			if !fields[m[1]] {
				t.Errorf("docs/cli.md: the answer has no field %s", m[1])
			}
		}
	}
}

// jsonFields adds the names of a struct's own fields in JSON.
func jsonFields(s reflect.Type, fields map[string]bool) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name != "":
			fields[name] = true
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			jsonFields(f.Type, fields)
		}
	}
}
