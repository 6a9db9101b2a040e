//go:build linux

package obstacle_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// files returns the names in a directory, including hidden files.
func files(t *testing.T, folder string) []string {
	t.Helper()
	all, err := os.ReadDir(folder)
	require.NoError(t, err)
	var names []string
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// If the directory of an output is removed during the run, the error names the output, all others are written, and
// the answer is printed.
func TestFailingOutputLosesNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		problem string
		bad     []string
		good    []string
		left    []string
	}{
		"solution": {"membrane", []string{"u.npy", "u.vti"}, []string{"v.npy", "v.csv"}, []string{"v.csv", "v.npy"}},
		"series":   {"front1d", []string{"s.pvd"}, []string{"v.npy", "w.pvd"}, []string{"v.npy", "w.pvd", "w_0.vti", "w_1.vti", "w_2.vti", "w_3.vti"}},
	} {
		t.Run(name, func(t *testing.T) {
			here := t.TempDir()
			gone := filepath.Join(t.TempDir(), "gone")
			require.NoError(t, os.Mkdir(gone, 0o755))
			args := []string{"solve", c.problem, "--n", "9", "--peers", "1"}
			if name == "series" {
				args = append(args, "--param", "steps=3")
			}
			for i := range max(len(c.bad), len(c.good)) {
				if i < len(c.bad) {
					args = append(args, "--out", filepath.Join(gone, c.bad[i]))
				}
				args = append(args, "--out", filepath.Join(here, c.good[i]))
			}
			r, address, secret := waiting(t, args...)
			if name == "solution" { // a series has written its first step
				require.Empty(t, files(t, gone), "nothing of the trial is left there")
			}
			require.NoError(t, os.RemoveAll(gone))
			p := start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1")
			require.Equal(t, 1, r.wait(patience))
			require.Equal(t, 0, p.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Len(t, s.Outputs, len(c.bad)+len(c.good))
			for _, o := range s.Outputs {
				if filepath.Dir(o.File) == gone {
					require.Contains(t, o.Error, "output "+o.File[:len(o.File)-4])
					require.Contains(t, o.Error, "there is no directory "+gone)
				} else {
					require.Equal(t, report.Output{File: o.File}, o)
				}
			}
			require.Equal(t, c.left, files(t, here))
			r.said("obstacle: [12] of [34] files were not written: output " + gone)
		})
	}
}

// fileLimit is the environment variable with the limit on the size of the program's files in bytes. The test binary,
// which writes a log of its own, has no limit.
const fileLimit = "OBSTACLE_TEST_FILE_LIMIT"

// limitFiles sets the limit of this process.
func limitFiles() {
	if os.Getenv(fileLimit) == "" {
		return
	}
	var was unix.Rlimit
	size, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
	if err := errors.Join(err, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max})); err != nil {
		panic(err)
	}
}

// A full file system costs one output and leaves no partial file.
func TestFullFileSystem(t *testing.T) {
	here := t.TempDir()
	old, u, png := filepath.Join(here, "u.csv"), filepath.Join(here, "u.npy"), filepath.Join(here, "c.png")
	for _, name := range []string{old, png} {
		require.NoError(t, os.WriteFile(name, []byte("of another run"), 0o644))
	}
	t.Setenv(fileLimit, "65536")
	r := start(t, "solve", "membrane", "--n", "12", "--peers", "2", "--format", "json", "--out", old, "--out", u)
	require.Equal(t, 1, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Equal(t, []report.Output{{File: old, Error: "output " + old + ": file too large"}, {File: u}}, s.Outputs)

	r = start(t, "solve", "membrane", "--n", "12", "--peers", "2", "--out", old)
	require.Equal(t, 1, r.wait(patience))
	require.Contains(t, r.stdout.String(), "solved")
	require.Regexp(t, `(?m)^NOT WRITTEN +output .*u.csv: file too large$`, r.stdout.String())

	t.Setenv(fileLimit, "512")
	r = start(t, "compare", "membrane", "--n", "6", "--peers", "1", "--scheme", "async", "--rounds", "1", "--in-process", "--out", png)
	require.Equal(t, 1, r.wait(patience))
	require.Regexp(t, `(?m)^richardson +async +1 `, r.stdout.String())
	require.Regexp(t, `(?m)^NOT WRITTEN output .*c.png: file too large$`, r.stdout.String())

	for _, name := range []string{old, png} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "of another run", string(text))
	}
	require.Equal(t, []string{"c.png", "u.csv", "u.npy"}, files(t, here))
}

// If the answer cannot be printed, the files are written, and the exit code is 1. A log that cannot be written has no
// effect.
func TestAnswerThatCannotBePrinted(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	in, closed, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, in.Close())
	defer closed.Close()
	for _, c := range []struct {
		name     string
		out, log *os.File
		code     int
		said     string
	}{
		{"full", full, nil, 1, "cannot print the answer: write /dev/stdout: no space left on device"},
		{"closed", closed, nil, 1, "cannot print the answer: write /dev/stdout: broken pipe"},
		{"no log", nil, closed, 0, ""},
	} {
		for _, format := range []string{"text", "json"} {
			t.Run(c.name+", "+format, func(t *testing.T) {
				at := filepath.Join(t.TempDir(), "u.npy")
				cmd := exec.Command(os.Args[0], "solve", "membrane", "--n", "8", "--peers", "2", "--out", at, "--format", format, "--log-level", "info")
				if testing.Short() {
					cmd.Args = append(cmd.Args, "--in-process")
				}
				cmd.Env = append(os.Environ(), asProgram+"="+mode())
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				if c.out != nil {
					cmd.Stdout = c.out
				}
				if c.log != nil {
					cmd.Stderr = c.log
				}
				_ = cmd.Run() // the test checks the exit code
				require.Equal(t, c.code, cmd.ProcessState.ExitCode())
				require.FileExists(t, at)
				require.Contains(t, errs.String(), c.said)
				if c.out == nil {
					require.Contains(t, out.String(), "membrane")
				}
			})
		}
	}
}

// Outputs that cannot be written are refused before the run.
func TestOutputWhereNothingCanBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"solve", "membrane", "--n", "8", "--out", "/proc/u.npy"},
		{"solve", "front1d", "--n", "8", "--out", "/proc/u.pvd"},
		{"solve", "membrane", "--n", "8", "--trace", "/proc/trace"},
		{"compare", "membrane", "--n", "8", "--out", "/proc/c.png"},
		{"compare", "membrane", "--model", "graphene-eth", "--csv", "/proc/t.csv"},
		{"calibrate", "--out", "/proc/m.yaml"},
	} {
		r := start(t, args...)
		require.Equal(t, 2, r.wait(patience), "%v", args)
		r.said("output /proc/.*: no file can be created in its directory: ")
		require.Empty(t, r.stdout.String())
	}
}
