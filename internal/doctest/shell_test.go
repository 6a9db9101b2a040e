package doctest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mark begins the line that precedes the output of a block.
const mark = "\x1e"

// runPage runs the blocks of a page as one script and compares the text blocks with its output.
func runPage(t *testing.T, page []*block) {
	script := script(page)
	if script == "" {
		return
	}
	if !installed("sh") {
		t.Skip("no sh")
	}
	folder := t.TempDir()
	name := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(name, []byte(script), 0o600))
	c := exec.CommandContext(t.Context(), "sh", "-e", name)
	c.Dir, c.Env = folder, environment(t, folder)
	out, err := c.CombinedOutput()
	printed := outputs(string(out))
	require.NoError(t, err, "%s", last(string(out)))
	var before *block
	for _, b := range page {
		switch {
		case b.left() != "":
		case b.language == "sh":
			before = b
		case b.language == "text":
			if b.notes["run"] != "" {
				before = b
			}
			require.NotNil(t, before, "%v: no command before it", b)
			require.Regexp(t, pattern(b.text), printed[before.String()], "%v differs from what %v prints", b, before)
		case b.language == "table":
			compareNumbers(t, b, printed[b.String()])
		case b.language == "json" && b.notes["run"] != "":
			require.Subset(t, keys(t, printed[b.String()]), keys(t, b.text), "%v: keys", b)
		}
	}
}

// keys returns the keys of a JSON object.
func keys(t *testing.T, text string) []string {
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &object), "%s", text)
	return slices.Collect(maps.Keys(object))
}

// script returns the commands of a page, with the mark of each block that has some.
func script(page []*block) string {
	var s strings.Builder
	for _, b := range page {
		if b.left() != "" || b.language == "python" || b.language == "go" && b.name == "" {
			continue
		}
		text := b.notes["run"] + "\n"
		switch b.language {
		case "sh":
			text += b.text
		case "go":
			text = here(b.name, b.text)
		case "yaml":
			text = readYAML(b)
		}
		if text != "\n" {
			fmt.Fprintf(&s, "printf '\\036%v\\n'\n%s", b, text)
		}
	}
	return s.String()
}

// here returns the command that writes a file.
func here(name, text string) string {
	return "cat > " + name + " <<'END OF FILE'\n" + text + "END OF FILE\n"
}

var problemKey = regexp.MustCompile(`(?m)^(dimension|kind):`)

// readYAML returns the commands that write the block to a file and read it: a problem is solved, on a small grid.
func readYAML(b *block) string {
	name := b.name
	if name == "" {
		name = fmt.Sprintf("block-%d.yaml", b.line)
	}
	text := here(name, b.text)
	if b.notes["run"] != "" {
		return text + b.notes["run"] + "\n"
	}
	text += "obstacle check " + name + "\n"
	if problemKey.MatchString(b.text) {
		text += "obstacle solve " + name + " --n 15\n"
	}
	return text
}

// outputs divides the output of a script by blocks.
func outputs(text string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(text, mark) {
		name, printed, _ := strings.Cut(part, "\n")
		out[name] += printed
	}
	return out
}

// last returns the output of the last block, which failed.
func last(text string) string { return text[strings.LastIndex(text, mark)+1:] }

// pattern returns the expression that a text block stands for.
func pattern(text string) *regexp.Regexp {
	text = regexp.QuoteMeta(text)
	text = strings.ReplaceAll("\n"+text, "\n…\n", "\n(.*\n)*?")
	return regexp.MustCompile("(?m)" + strings.ReplaceAll(strings.Trim(text, "\n"), "…", ".*"))
}

// environment returns the environment of a page's commands. obstacle is this test binary; go run ./cmd/obstacle is the
// same, without building it. Other packages and the targets of make are those of this repository, whatever the folder;
// of make, only the existence of a target is checked. Nothing is downloaded.
func environment(t *testing.T, folder string) []string {
	self, err := os.Executable()
	require.NoError(t, err)
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "obstacle")))
	for _, name := range []string{"docs", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(repository, name), filepath.Join(folder, name)))
	}
	path := os.Getenv("PATH")
	command := func(name, text string) {
		text = "#!/bin/sh\nPATH=" + quote(path) + "\n" + text
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	}
	command("go", `case "$1 $2" in
"run ./cmd/obstacle") shift 2; exec `+quote(filepath.Join(bin, "obstacle"))+` "$@" ;;
esac
[ "$PWD" != `+quote(folder)+` ] || cd `+quote(repository)+`
exec go "$@"
`)
	command("make", "exec make -n -C "+quote(repository)+` "$@" > /dev/null`+"\n")
	return append(os.Environ(),
		"GOFLAGS=", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on", asProgram+"=1",
		"P2PDC="+repository, "PATH="+bin+string(filepath.ListSeparator)+path)
}

// quote returns a word of a shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func TestTextStandsForOutput(t *testing.T) {
	require.Regexp(t, pattern("a (b)\n…s here\n"), "x\na (b)\n1.5 s here\ny")
	require.NotRegexp(t, pattern("a …\nb\n"), "a 1\nc\nb\n")
	require.Equal(t, map[string]string{"": "x\n", "a.md:1": "y\nz\n", "a.md:3": ""}, outputs("\nx\n\x1ea.md:1\ny\nz\n\x1ea.md:3\n"))
	require.Equal(t, "a.md:3\nfailed\n", last("x\n\x1ea.md:1\ny\n\x1ea.md:3\nfailed\n"))
}
