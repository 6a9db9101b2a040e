//go:build linux

package obstacle_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// running is a process of the program.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	gate   *gate.Gate // at which its peers wait; nil: none
	stdout bytes.Buffer
	done   chan struct{}
	code   int

	mu    sync.Mutex
	news  *sync.Cond
	lines []string // of stderr
	pids  map[int]int
	ended bool
}

// patience bounds every wait of these tests. Only a program that hangs takes longer; it then prints its goroutines.
const patience = await.Limit

// start runs the program with debug logs.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startIn(t, func(f func() error) error { return f() }, args...)
}

// startWith is start with a standard input.
func startWith(t *testing.T, stdin io.Reader, args ...string) *running {
	t.Helper()
	return startBy(t, func(f func() error) error { return f() }, stdin, args...)
}

// startIn is start within do, which may enter a network namespace.
func startIn(t *testing.T, do func(f func() error) error, args ...string) *running {
	t.Helper()
	return startBy(t, do, nil, args...)
}

func startBy(t *testing.T, do func(f func() error) error, stdin io.Reader, args ...string) *running {
	t.Helper()
	return startAs(t, do, nil, stdin, args...)
}

// startAs is start with further variables in the environment.
func startAs(t *testing.T, do func(f func() error) error, env []string, stdin io.Reader, args ...string) *running {
	t.Helper()
	r := &running{t: t, done: make(chan struct{}), pids: map[int]int{}}
	r.news = sync.NewCond(&r.mu)
	if args[0] == "solve" && args[1] != "chain" && !slices.Contains(args, "--method") {
		args = append(args, "--method", problem.Richardson) // a long run of many messages
	}
	if !slices.Contains(args, "--log-level") {
		args = append(args, "--log-level", "info")
	}
	r.cmd = exec.Command(os.Args[0], append(args, "--log-format", "json")...)
	r.cmd.Env = append(append(os.Environ(), asProgram+"="+mode()), env...)
	if g, is := gates.Load(t); is {
		r.gate = g.(*gate.Gate)
		r.cmd.Env = append(r.cmd.Env, r.gate.Environment())
	}
	r.cmd.Stdin, r.cmd.Stdout = stdin, &r.stdout
	errs, err := r.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, do(r.cmd.Start))
	go r.follow(errs)
	t.Cleanup(func() {
		r.signal(syscall.SIGKILL)
		<-r.done
		if t.Failed() {
			t.Logf("obstacle %q said:\n%s", args, strings.Join(r.lines, "\n"))
		}
	})
	return r
}

// gates holds the *gate.Gate of every test that has closed one.
var gates sync.Map

// closeGate closes a gate, at which all peers of the processes that t starts from now on wait until one of these
// processes opens it, or the run is to end. A gate without a condition is behind some sweeps.
func closeGate(t *testing.T, g gate.Gate) {
	t.Helper()
	if g == (gate.Gate{}) {
		g.Sweep = 5
	}
	g.Dir = t.TempDir()
	gates.Store(t, &g)
	t.Cleanup(func() { noGate(t) })
}

// noGate lets the processes that t starts from now on relax.
func noGate(t *testing.T) { gates.Delete(t) }

// open opens the gate that was closed before the process was started.
func (r *running) open() {
	r.t.Helper()
	require.NoError(r.t, r.gate.Open())
}

func (r *running) follow(errs io.Reader) {
	s := bufio.NewScanner(errs)
	for s.Scan() {
		var l struct {
			Message   string
			Rank, Pid int
		}
		r.mu.Lock()
		r.lines = append(r.lines, s.Text())
		if json.Unmarshal(s.Bytes(), &l) == nil && l.Message == "peer joined" {
			r.pids[l.Rank] = l.Pid
		}
		r.news.Broadcast()
		r.mu.Unlock()
	}
	_ = r.cmd.Wait()
	r.mu.Lock()
	r.code, r.ended = r.cmd.ProcessState.ExitCode(), true
	r.news.Broadcast()
	r.mu.Unlock()
	close(r.done)
}

func (r *running) signal(s syscall.Signal) {
	if s == syscall.SIGSTOP {
		stop(r.t, r.cmd.Process.Pid)
		return
	}
	_ = r.cmd.Process.Signal(s)
}

// stop stops a process, and returns when none of its threads runs any more. A signal is sent to one of them; until that is
// scheduled, the others go on.
func stop(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	await.Until(t, func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return !slices.ContainsFunc(threads, func(name string) bool {
			text, err := os.ReadFile(name)
			at := bytes.LastIndexByte(text, ')') // the name of the program, in parentheses, may hold any characters
			return err == nil && (len(text) < at+3 || text[at+2] != 'T')
		})
	}, "the threads of %d to stop", pid)
}

// guard makes a program that still runs after limit print its goroutines and end.
func (r *running) guard(limit time.Duration) (stop func() bool) {
	return time.AfterFunc(limit, func() { r.signal(syscall.SIGQUIT) }).Stop
}

// replaced waits until another process than the given one has the place of a rank, and returns it.
func (r *running) replaced(rank, was int) int {
	r.t.Helper()
	defer r.guard(patience)()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pids[rank] == was {
		require.False(r.t, r.ended, "no process took the place of %d", was)
		r.news.Wait()
	}
	return r.pids[rank]
}

// over reports whether the program has ended.
func (r *running) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// said waits for a line on stderr and returns its submatches.
func (r *running) said(pattern string) []string {
	r.t.Helper()
	m := r.says(pattern)
	if m == nil {
		r.t.Fatalf("nothing like %q was said:\n%s", pattern, strings.Join(r.lines, "\n"))
	}
	return m
}

// says waits for a line on stderr and returns its submatches, nil if the program ends without it.
func (r *running) says(pattern string) []string {
	re := regexp.MustCompile(pattern)
	defer r.guard(patience)()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 0; ; {
		for ; i < len(r.lines); i++ {
			if m := re.FindStringSubmatch(r.lines[i]); m != nil {
				return m
			}
		}
		if r.ended {
			return nil
		}
		r.news.Wait()
	}
}

// times returns how many lines on stderr contain a text so far.
func (r *running) times(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// neverSaid requires that stderr of an ended program has no such line.
func (r *running) neverSaid(text string) {
	r.t.Helper()
	for _, l := range r.lines {
		require.NotContains(r.t, l, text)
	}
}

// pid returns the process ID of a rank.
func (r *running) pid(rank int) int {
	r.said(fmt.Sprintf(`"rank":%d.*peer joined`, rank))
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[rank]
}

// wait returns the exit code. It waits for at most limit.
func (r *running) wait(limit time.Duration) int {
	r.t.Helper()
	stop := r.guard(limit)
	<-r.done
	if !stop() {
		r.t.Fatalf("still running after %v", limit)
	}
	r.nobodyLeft()
	return r.code
}

// nobodyLeft requires that every peer that joined has ended.
func (r *running) nobodyLeft() {
	r.t.Helper()
	for rank, pid := range r.pids {
		await.Until(r.t, func() bool { return gone(pid) }, "the end of peer %d, pid %d: it is an orphan", rank, pid)
	}
}

// gone reports whether a process has ended or is a zombie.
func gone(pid int) bool {
	state, _ := host.Process(pid)
	return state == 0 || state == 'Z'
}

// solution returns the JSON on stdout.
func (r *running) solution() report.Solution {
	r.t.Helper()
	var s report.Solution
	require.NoError(r.t, json.Unmarshal(r.stdout.Bytes(), &s), "%s", r.stdout.String())
	return s
}

// ports returns the TCP and UDP ports of a process.
func ports(t *testing.T, pid int) (tcp, udp []int) {
	t.Helper()
	inodes := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			inodes[strings.Trim(strings.TrimPrefix(to, "socket:"), "[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue
		}
		for _, l := range strings.Split(string(b), "\n") {
			f := strings.Fields(l)
			if len(f) < 10 || !inodes[f[9]] {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseInt(hex, 16, 32)
			require.NoError(t, err)
			switch {
			case strings.HasPrefix(table, "udp"):
				udp = append(udp, int(port))
			case f[3] == "0A": // LISTEN
				tcp = append(tcp, int(port))
			}
		}
	}
	return tcp, udp
}
