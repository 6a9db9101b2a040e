package tidy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largestFile bounds the files that git tracks: they stay in every clone for ever. The largest are pictures.
const largestFile = 400 << 10

// executables are the first bytes of compiled programs and libraries: ELF, PE, Mach-O of both byte orders and of several
// architectures, and archives of objects.
var executables = []string{"\x7fELF", "MZ\x90\x00", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe",
	"\xca\xfe\xba\xbe", "!<arch>\n"}

// unfit returns why git must not track a file with a size and first bytes; empty: it may.
func unfit(size int64, head []byte) string {
	for _, magic := range executables {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "it is compiled: delete it, and have make build it into bin"
		}
	}
	if size > largestFile {
		return fmt.Sprintf("its %d bytes are more than %d: keep it out of the repository, or make it smaller", size, largestFile)
	}
	return ""
}

// Git tracks no compiled file and no large one.
func TestTrackedFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a checkout of git")
	}
	names := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	require.Greater(t, len(names), 1)
	for _, name := range names {
		f, err := os.Open(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		i, err := f.Stat()
		require.NoError(t, err)
		if i.Mode().IsRegular() {
			head, err := io.ReadAll(io.LimitReader(f, 16))
			require.NoError(t, err)
			if why := unfit(i.Size(), head); why != "" {
				t.Errorf("%s: %s", name, why)
			}
		}
		require.NoError(t, f.Close())
	}
}

func TestUnfit(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	f, err := os.Open(self)
	require.NoError(t, err)
	defer f.Close()
	head := make([]byte, 16)
	_, err = io.ReadFull(f, head)
	require.NoError(t, err)
	require.Contains(t, unfit(1, head), "compiled")
	for _, magic := range executables {
		require.Contains(t, unfit(1, []byte(magic)), "compiled")
	}
	require.Contains(t, unfit(largestFile+1, []byte("text")), "its 409601 bytes")
	for _, text := range []string{"", "\x7fEL", "#!/bin/sh\n", "package tidy"} {
		require.Empty(t, unfit(largestFile, []byte(text)))
	}
}

// A test under a launcher that disturbs a run holds it at a gate. A run that is only slowed down may end before on a fast machine.
func TestScriptsHoldTheRunsThatTheyDisturb(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("..", "..", "deploy", "test", "*.sh"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "--slowdown", name)
	}
}

// Every picture of the documents is in one of them.
func TestPicturesAreShown(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join("..", "..", "docs", "pictures", "*.png"))
	require.NoError(t, err)
	require.NotEmpty(t, pictures)
	var text strings.Builder
	for _, f := range projectTree(t).files {
		if strings.HasSuffix(f.name, ".md") {
			text.Write(f.text)
		}
	}
	for _, name := range pictures {
		require.Contains(t, text.String(), filepath.Base(name), "no document shows it: delete it, also from make pictures")
	}
}
