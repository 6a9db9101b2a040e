package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

var (
	commandLine = regexp.MustCompile("(?m)(?:^(?:\\$ )?|`)(?:(?:srun|mpirun|mpiexec) (?:-\\S+ (?:\\d+ )?)*)?(?:go run \\./cmd/)?obstacle ([a-z][^`\n]*)")
	longFlag    = regexp.MustCompile(`^--([a-z][a-z-]*)`)
)

// TestDocumentedCommands checks that every command that README.md and docs/ show exists, and
// has every flag that is shown with it under its present name.
func TestDocumentedCommands(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	commands := documented(t, filepath.Join(root, "README.md"))
	require.NotEmpty(t, commands)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			commands = append(commands, documented(t, name)...)
		}
		return err
	}))
	for _, line := range commands {
		line, _, _ := strings.Cut(line, " #")
		args := strings.Fields(line)
		command, _, err := (&app{catalog: catalog.New()}).root().Find(args)
		require.NoError(t, err, "obstacle %s", line)
		for _, arg := range args {
			if m := longFlag.FindStringSubmatch(arg); m != nil && m[1] != "help" {
				flag := command.Flag(m[1])
				require.NotNil(t, flag, "obstacle %s: no flag --%s", line, m[1])
				require.Equal(t, flag.Name, m[1], "obstacle %s: a former name", line)
			}
		}
	}
}

// documented returns the arguments of every call of the program in a document.
func documented(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var out []string
	for _, m := range commandLine.FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}
