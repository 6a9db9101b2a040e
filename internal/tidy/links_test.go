package tidy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced   = regexp.MustCompile("(?s)\n```.*?\n```")
	dropped  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	decision = regexp.MustCompile(`(?:ADRs? |docs/adr/)([0-9]+(?:(?:, | and )[0-9]+)*)`)
	section  = regexp.MustCompile(`SPEC(?:\.md)? (?:§ ?)?([0-9]+)`)
	number   = regexp.MustCompile(`[0-9]+`)
)

// TestLinks checks that every relative link of a Markdown file leads to a file of the
// repository and, where it names one, to a heading of that file.
func TestLinks(t *testing.T) {
	tree := projectTree(t)
	for _, f := range tree.files {
		if path.Ext(f.name) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(f.text), ""), -1) {
			if target := m[1]; !strings.Contains(target, "://") {
				checkLink(t, tree, f, target)
			}
		}
	}
}

func checkLink(t *testing.T, tree *tree, from *file, target string) {
	t.Helper()
	name, anchor, anchored := strings.Cut(target, "#")
	if name = path.Join(from.dir, name); target[0] == '#' {
		name = from.name
	}
	if _, err := os.Stat(filepath.Join(tree.root, filepath.FromSlash(name))); err != nil {
		t.Errorf("%s links to %s, which does not exist", from.name, target)
		return
	}
	if anchored && !slices.Contains(anchors(page(t, tree, name)), anchor) {
		t.Errorf("%s links to %s, but %s has no such heading", from.name, target, name)
	}
}

// anchors returns the names by which a Markdown file's headings are linked to.
func anchors(f *file) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(f.text), ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// TestCitations checks that decision records and sections of the specification that
// comments and documents cite exist.
func TestCitations(t *testing.T) {
	tree := projectTree(t)
	sections := heading.FindAllString(string(page(t, tree, "docs/specification.md").text), -1)
	for _, f := range tree.files {
		if f.dir == "internal/tidy" {
			continue
		}
		for _, n := range cited(decision, f) {
			found, err := filepath.Glob(filepath.Join(tree.root, "docs", "adr", strings.Repeat("0", 4-len(n))+n+"-*.md"))
			require.NoError(t, err)
			if len(found) != 1 {
				t.Errorf("%s cites ADR %s, which is not in docs/adr; docs/adr/README.md says where merged ones are", f.name, n)
			}
		}
		for _, n := range cited(section, f) {
			if !slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(s, "## "+n+". ") }) {
				t.Errorf("%s cites SPEC %s, which docs/specification.md does not have", f.name, n)
			}
		}
	}
}

// cited returns the numbers that a file names after a word.
func cited(word *regexp.Regexp, f *file) []string {
	var out []string
	for _, m := range word.FindAllSubmatch(f.text, -1) {
		for _, n := range number.FindAllString(string(m[1]), -1) {
			if n = strings.TrimLeft(n, "0"); len(n) > 0 && len(n) <= 4 {
				out = append(out, n)
			}
		}
	}
	return out
}
