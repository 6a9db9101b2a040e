//go:build page

package page_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/cli"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// asProgram is the environment variable that makes this test binary the program, which starts its peers so, too.
const asProgram = "OBSTACLE_PAGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		c := catalog.New()
		var err error
		if c.Methods, err = gate.Methods(c.Methods); err != nil {
			panic(err)
		}
		os.Exit(cli.Main(context.Background(), os.Args[1:], c, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is a process of the program.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer
	over chan struct{}

	mu    sync.Mutex
	news  *sync.Cond
	lines []string // of stderr
	ended bool
}

// closed returns a gate at which the peers of a run wait until the test opens it, so that the run can be watched.
func closed(t *testing.T) *gate.Gate { return &gate.Gate{Dir: t.TempDir(), Sweep: 5} }

func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startAt(t, nil, args...)
}

// startAt is start with a gate; nil: none.
func startAt(t *testing.T, g *gate.Gate, args ...string) *program {
	t.Helper()
	p := &program{t: t, over: make(chan struct{}), cmd: exec.Command(os.Args[0], args...)}
	p.news = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	if g != nil {
		p.cmd.Env = append(p.cmd.Env, g.Environment())
	}
	p.cmd.Stdout = &p.out
	errs, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		for s := bufio.NewScanner(errs); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.news.Broadcast()
			p.mu.Unlock()
		}
		_ = p.cmd.Wait()
		p.mu.Lock()
		p.ended = true
		p.news.Broadcast()
		p.mu.Unlock()
		close(p.over)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.over
		if t.Failed() {
			t.Logf("obstacle %q said:\n%s", args, strings.Join(p.lines, "\n"))
		}
	})
	return p
}

// said waits for a line on stderr and returns the first submatch.
func (p *program) said(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := 0; ; p.news.Wait() {
		for ; at < len(p.lines); at++ {
			if m := re.FindStringSubmatch(p.lines[at]); m != nil {
				return m[1]
			}
		}
		require.False(p.t, p.ended, "it has ended, and did not say %s", pattern)
	}
}

// answer waits for the end with an exit code and returns the JSON.
func (p *program) answer(code int) (v map[string]any) {
	p.t.Helper()
	<-p.over
	require.Equal(p.t, code, p.cmd.ProcessState.ExitCode())
	require.NoError(p.t, json.Unmarshal(p.out.Bytes(), &v))
	return v
}

// A peer of a real run is killed: the page shows the loss, the process that replaced it, and then the answer.
func TestLossOfARealRun(t *testing.T) {
	b := open(t)
	g := closed(t)
	p := startAt(t, g, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3", "--scheme", "async",
		"--http", "127.0.0.1:0", "--format", "json")
	address := p.said(`page at (http://\S+)`)
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#n-residual"))
	b.until("selected().places.length === 3 && selected().peers.every(p => p[0] > 0 && p[1] > 0)")
	process := eval[string](b, "selected().places[1].process")
	var pid int
	_, err := fmt.Sscanf(process, "pid %d", &pid)
	require.NoError(t, err)
	require.NotEqual(t, p.cmd.Process.Pid, pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	b.until("/loss of rank 1, took [^:]+: .*its part went to /.test(byId('marks').textContent)")
	b.until(fmt.Sprintf("selected().places[1].process !== %q && selected().peers.every(p => !p[4])", process))
	require.Equal(t, 1.0, b.number("epoch"))
	require.NoError(t, g.Open())
	b.until("byId('phase').textContent === 'ended: converged'")
	v := p.answer(0)
	losses := v["losses"].([]any)
	require.Len(t, losses, 1)
	loss := losses[0].(map[string]any)
	require.Equal(t, 1.0, loss["rank"])
	require.Equal(t, loss["detected"], eval[float64](b, "selected().marks.find(m => m.kind === 'loss').at"))
	require.InDelta(t, loss["recovered"].(float64)-loss["detected"].(float64),
		eval[float64](b, "selected().marks.find(m => m.kind === 'loss').took"), 1e-12)
	require.Equal(t, v["relative_residual"], b.number("residual"))
	require.Equal(t, v["contact_points"], b.number("contact"))
	b.until("byId('link').textContent.startsWith('the program has ended')")
	require.True(t, eval[bool](b, "byId('lost').hidden"))
	origin, _, _ := strings.Cut(address, "?") // the token is in no further request
	b.clean(origin)
}

// The launcher of a real run, which serves the page, is killed. The page says so, and names a command that shows the run
// again; the open page follows it to the end.
func TestLostLauncherInABrowser(t *testing.T) {
	b := open(t)
	secret := filepath.Join(t.TempDir(), "run.secret")
	require.NoError(t, os.WriteFile(secret, []byte("the secret of this run\n"), 0o600))
	g := closed(t)
	p := start(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3", "--scheme", "async", "--suspect",
		"1m", "--rendezvous", "127.0.0.1:0", "--secret-file", secret, "--http", "127.0.0.1:0", "--http-token", "none")
	address, at := p.said(`page at (http://\S+)`), p.said(`waiting for \d+ peers at (\S+):`)
	for range 3 {
		startAt(t, g, "peer", "--rendezvous", at, "--secret-file", secret, "--listen", "127.0.0.1")
	}
	command := p.said(`keepers of the run: .*: obstacle (attach .*)`)
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#n-residual"))
	b.until("(selected().state.keepers || []).length === 3 && selected().state.residual > 0")
	require.Contains(t, eval[string](b, "byId('leader').textContent"), "the run goes on: obstacle "+command)
	require.True(t, eval[bool](b, "byId('lost').hidden"))

	require.NoError(t, p.cmd.Process.Kill())
	b.until("/^The connection to the program was lost at .*:.*the run goes on without it/.test(byId('lost').textContent)")
	require.False(t, eval[bool](b, "byId('lost').hidden"))
	text := eval[string](b, "byId('lost').textContent")
	require.True(t, strings.HasSuffix(text, ": obstacle "+command), text)

	again := start(t, append(strings.Fields(command), "--format", "json")...)
	b.until("selected() && selected().info.attached && byId('lost').hidden")
	require.NoError(t, g.Open())
	b.until("byId('phase').textContent === 'ended: converged'")
	v := again.answer(0)
	require.Equal(t, v["relative_residual"], b.number("residual"))
	require.Equal(t, v["contact_points"], b.number("contact"))
}

// The page of a real simulated run of hundreds of machines has the numbers of the JSON, a slice and a map.
func TestSimulatedRunOfManyMachines(t *testing.T) {
	b := open(t)
	name := filepath.Join(t.TempDir(), "run.html")
	v := start(t, "simulate", "membrane", "--machines", "256", "--model", "graphene-eth", "--n", "16", "--scheme", "async",
		"--partition", "boxes", "--max-sweeps", "20", "--format", "json", "--report", name).answer(3) // stopped early
	b.do(chromedp.Navigate("file://"+name), chromedp.WaitVisible("#n-residual"))
	b.do(chromedp.Evaluate("byId('run').value = model.runs.find(r => r.info.peers === 256).id; "+
		"byId('run').dispatchEvent(new Event('change'))", nil)) // the other run is the reference on one machine
	require.Equal(t, 256.0, b.number("peers"))
	require.Equal(t, v["seconds"], b.number("elapsed"))
	require.Equal(t, v["relative_residual"], b.number("residual"))
	b.until("Number(byId('field').dataset.known) === 16 * 16")
	require.False(t, eval[bool](b, blank+"(byId('field'))"))
	require.False(t, eval[bool](b, blank+"(byId('map'))"))
	require.Equal(t, 256, eval[int](b, "selected().places.length"))
	b.clean("file://")
}
