package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain makes this test binary the program when it is run again, by a test or as a peer of a run.
func TestMain(m *testing.M) {
	if os.Getenv("OWN_OBSTACLE") != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), "OWN_OBSTACLE=1")
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	err = c.Run()
	return o.String(), e.String(), err
}

// answer is the part of the JSON of solve that the tests read.
type answer struct {
	Problem   string
	Converged bool
	Network   string
	Sum       float64
	Sessions  []struct {
		Network     string
		Composition []string
	}
}

func solve(t *testing.T, args ...string) answer {
	t.Helper()
	out, errs, err := program(t, append([]string{"solve", "dome", "--n", "31", "--peers", "3", "--format", "json"}, args...)...)
	require.NoError(t, err, errs)
	var a answer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Equal(t, "dome", a.Problem)
	require.True(t, a.Converged)
	require.NotEmpty(t, a.Sessions)
	return a
}

// Three processes solve the problem with each of the things that main adds.
func TestRun(t *testing.T) {
	plain := solve(t, "--network", "ether")
	for _, s := range plain.Sessions {
		require.NotContains(t, s.Composition, "Checksum")
	}
	with := solve(t, "--network", "ether", "--rows", "Checksum")
	for _, s := range with.Sessions {
		require.Contains(t, s.Composition, "Checksum")
	}
	require.Equal(t, plain.Sum, with.Sum, "a synchronous run gives the same bits")
	unix := solve(t, "--network", "unix")
	for _, s := range unix.Sessions {
		require.Equal(t, "shm", s.Network)
	}
	require.Equal(t, plain.Sum, unix.Sum)
	solve(t, "--network", "unix", "--scheme", "async")
}

// Errors and lists name what was added.
func TestNames(t *testing.T) {
	out, _, err := program(t, "problems")
	require.NoError(t, err)
	require.Contains(t, out, "dome (2-D)\n  a membrane over a dome")
	for flag, want := range map[string]string{
		"--rows":    "want NegativeAck or Checksum",
		"--network": "want auto, ether, ib or unix",
	} {
		_, errs, err := program(t, "solve", "dome", flag, "other")
		require.Error(t, err)
		require.Contains(t, errs, want)
	}
	_, errs, err := program(t, "solve", "doome")
	require.Error(t, err)
	require.Contains(t, errs, `did you mean "dome"?`)
}
