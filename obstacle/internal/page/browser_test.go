//go:build page

package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/cli"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	served "github.com/p2pdc/p2pdc/obstacle/internal/page"
)

var picture = flag.String("picture", "", "write a picture of the page to this file")

// browser is a page in a headless Chromium.
type browser struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string // errors of scripts and of the policy
}

func open(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("NOT TESTED: there is no Chromium here: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 1500), chromedp.Flag("enable-unsafe-swiftshader", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Source == log.SourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				b.problems = append(b.problems, e.Entry.Text)
			}
		}
	})
	b.do(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

func (b *browser) do(all ...chromedp.Action) {
	b.Helper()
	require.NoError(b, chromedp.Run(b.ctx, all...))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) (v T) {
	b.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// until waits for an expression to be true.
func (b *browser) until(expression string) {
	b.Helper()
	b.do(chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(30*time.Second)))
}

// number returns a number of the page with all its digits.
func (b *browser) number(id string) float64 {
	b.Helper()
	v, err := strconv.ParseFloat(eval[string](b, fmt.Sprintf("byId('n-%s').dataset.value", id)), 64)
	require.NoError(b, err, id)
	return v
}

// clean checks that the page has asked nobody else for anything, and that no script failed or was refused.
func (b *browser) clean(origin string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b, b.problems)
	for _, r := range b.requests {
		require.True(b, strings.HasPrefix(r, origin) || strings.HasPrefix(r, "data:"), r)
	}
	require.NotEmpty(b, b.requests)
}

// blank reports whether the left part of a canvas, where there is no scale, has few coloured pixels: texts are grey.
const blank = `(c => { const d = c.getContext("2d").getImageData(0, 0, c.width * .3, c.height).data;
let n = 0;
for (let i = 0; i < d.length; i += 4) if (Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 40) n++;
return n < 20; })`

// solve runs the program and returns its JSON.
func solve(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), append(args, "--format", "json"), catalog.New(), nil, &out, &errs)
	require.Zero(t, code, errs.String())
	var v map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &v))
	return v
}

// The report of a run opens from a disk without a network, and its numbers are those of the JSON.
func TestReportInABrowser(t *testing.T) {
	b := open(t)
	name := filepath.Join(t.TempDir(), "run.html")
	v := solve(t, "solve", "membrane", "--n", "24", "--peers", "2", "--in-process", "--scheme", "async", "--report", name)
	b.do(chromedp.Navigate("file://"+name), chromedp.WaitVisible("#n-residual"))
	require.Equal(t, v["relative_residual"], b.number("residual"))
	require.Equal(t, v["seconds"], b.number("elapsed"))
	require.Equal(t, v["contact_points"], b.number("contact"))
	require.Equal(t, v["messages"], b.number("messages"))
	require.Equal(t, v["bytes"], b.number("bytes"))
	require.Equal(t, v["points"], b.number("points"))
	require.Equal(t, v["tolerance"], b.number("tolerance"))
	require.Equal(t, v["sweeps"].([]any)[0], b.number("sweep"))
	for rank, sweeps := range v["sweeps"].([]any) {
		require.Equal(t, sweeps, eval[float64](b, fmt.Sprintf("selected().peers[%d][0]", rank)))
	}
	b.until("byId('field').dataset.known > 0")
	require.False(t, eval[bool](b, blank+"(byId('field'))"))
	require.False(t, eval[bool](b, blank+"(byId('peers'))"))
	require.False(t, eval[bool](b, blank+"(byId('map'))"))
	// The slice follows its slider, and the set of contact of the middle plane is that of the solution.
	touching := eval[int](b, "Number(byId('field').dataset.contact)")
	require.Positive(t, touching)
	b.do(chromedp.Evaluate("byId('plane').value = 0; byId('plane').dispatchEvent(new Event('input'))", nil))
	b.until(fmt.Sprintf("Number(byId('field').dataset.contact) < %d", touching))
	b.until("byId('surface').dataset.triangles > 100")
	require.Equal(t, eval[int](b, "Number(byId('field').dataset.known)"), 24*24)
	b.clean("file://")
}

// live is a served page of a run with a loss.
func live(t *testing.T, peers int, problem string) (*monitor.Shared, int, *httptest.Server) {
	t.Helper()
	m := monitor.NewShared()
	id := m.Begin(monitor.Info{
		Label: problem, Problem: problem, Scheme: "async", Method: "richardson", N: []int{32, 32, 32}, Points: 32768,
		Peers:     peers,
		Tolerance: 1e-6,
	})
	all, places, reads := make(monitor.Peers, peers), make(monitor.Places, peers), monitor.Reads{}
	for rank := range peers {
		all[rank] = monitor.Peer{Sweep: float64(rank), Relaxing: 2, Waiting: float64(rank%5) / 2, Protocol: 0.25}
		places[rank] = monitor.Place{
			Process: fmt.Sprintf("pid %d", rank), Host: fmt.Sprintf("node%d", rank/8), Lo: [3]int{0, 0, rank},
			Hi: [3]int{32, 32, rank + 1},
		}
		reads = append(reads, monitor.Read{By: rank, Of: (rank + 1) % peers, Faces: 10, Mean: float64(rank % 7), Newest: 1})
	}
	m.Add(id, monitor.Phase(monitor.Solving), all, places, reads)
	for i := range 50 {
		m.Add(id, monitor.Progress{Elapsed: time.Duration(i) * time.Second, Sweep: float64(10 * i),
			Residual: math.Pow(0.8, float64(i))})
	}
	m.Add(id, monitor.Sessions{All: []monitor.Session{{From: 0, To: 1, Name: "halo/0-1", Composition: []string{"Resize"},
		RTT: 1e-4, Loss: 0.125}}})
	server := httptest.NewServer(served.Handler(served.Options{Source: m}))
	t.Cleanup(server.Close)
	return m, id, server
}

// A loss appears while the page is open; names are text; the page works by keyboard, in the dark, on a phone, and after
// the run.
func TestLivePage(t *testing.T) {
	b := open(t)
	const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	m, id, server := live(t, 3, evil)
	b.do(chromedp.Navigate(server.URL), chromedp.WaitVisible("#n-residual"))
	require.Contains(t, eval[string](b, "byId('title').textContent"), evil)
	require.Zero(t, eval[int](b, "document.querySelectorAll('img, body script:not([src])').length"))
	require.NotEqual(t, "owned", eval[string](b, "document.title"))
	require.InDelta(t, math.Pow(0.8, 49), b.number("residual"), 1e-15)
	require.Positive(t, b.number("left"))
	for _, canvas := range []string{"#chart-time canvas", "#chart-sweeps canvas", "#peers", "#reads", "#map"} {
		require.False(t, eval[bool](b, blank+"(document.querySelector('"+canvas+"'))"), canvas)
	}
	require.Contains(t, eval[string](b, "byId('sessions').textContent"), "halo/0-1")
	require.Zero(t, eval[int](b, "byId('marks').children.length"))
	m.Add(id, monitor.Marks{{Kind: monitor.MarkLoss, Rank: 2, At: 5, Took: nullable.NaN(), Text: "it " + evil}})
	b.until("byId('marks').children.length === 1")
	require.Contains(t, eval[string](b, "byId('marks').textContent"), "loss of rank 2: it "+evil)
	m.Add(id, monitor.Marks{{Kind: monitor.MarkLoss, Rank: 2, At: 5, Took: 0.5, Text: "it ended"}})
	b.until("byId('marks').textContent.includes('took 500 ms')")
	require.False(t, eval[bool](b, blank+"(byId('timeline'))"))

	// By keyboard: the tab key reaches the canvases, and the arrow keys read them.
	b.do(chromedp.Focus("#run", chromedp.ByQuery))
	focused := map[string]bool{}
	for range 12 {
		b.do(chromedp.KeyEvent(kb.Tab))
		focused[eval[string](b, "document.activeElement.id")] = true
	}
	for _, want := range []string{"peers", "reads", "map", "field-on", "axis"} {
		require.True(t, focused[want], "%s cannot be reached: %v", want, focused)
	}
	b.do(chromedp.Focus("#peers", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	b.until("byId('peers-at').textContent.startsWith('rank 1: relaxing 2 s')")
	b.do(chromedp.Focus("#reads", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	b.until("byId('reads-at').textContent.startsWith('rank 0 read 10 faces of rank 1')")

	// Dark and light.
	colour := func(scheme string) string {
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}))
		return eval[string](b, "getComputedStyle(document.body).backgroundColor")
	}
	require.Equal(t, "rgb(255, 255, 255)", colour("light"))
	require.Equal(t, "rgb(13, 17, 23)", colour("dark"))
	b.until("theme('fg') === '#e6edf3'")

	// On a phone nothing is wider than the screen.
	b.do(emulation.SetDeviceMetricsOverride(360, 740, 2, true))
	b.until("innerWidth === 360 && document.documentElement.scrollWidth <= 360")
	b.do(emulation.ClearDeviceMetricsOverride())

	m.Add(id, monitor.End{Reason: "converged", Converged: true, Elapsed: 50, Sweep: 500, Residual: 5e-7, Contact: 12})
	b.until("byId('phase').textContent === 'ended: converged'")
	require.Equal(t, 5e-7, b.number("residual"))
	server.CloseClientConnections()
	server.Close()
	b.until("byId('link').textContent.startsWith('the program has ended')")
	b.do(chromedp.Focus("#peers", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	b.until("byId('peers-at').textContent.startsWith('rank 2')")
	b.clean(server.URL)
}

// With 4096 peers the page shows means of several, and stays small.
func TestManyPeers(t *testing.T) {
	b := open(t)
	_, _, server := live(t, 4096, "membrane")
	b.do(chromedp.Navigate(server.URL), chromedp.WaitVisible("#n-residual"))
	require.Equal(t, 4096.0, b.number("peers"))
	require.False(t, eval[bool](b, blank+"(byId('peers'))"))
	require.False(t, eval[bool](b, blank+"(byId('reads'))"))
	require.False(t, eval[bool](b, blank+"(byId('map'))"))
	require.Equal(t, 4096, eval[int](b, "byId('peers').all.reduce((n, b) => n + b.last - b.first + 1, 0)"))
	require.Less(t, eval[int](b, "document.getElementsByTagName('*').length"), 1000)
	b.do(chromedp.Focus("#peers", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	b.until("/^ranks \\d+ to \\d+, mean: relaxing 2 s/.test(byId('peers-at').textContent)")
	b.clean(server.URL)
}

// A day of samples leaves the memory of the page flat.
func TestMemoryOfThePage(t *testing.T) {
	b := open(t)
	empty := monitor.NewShared()
	server := httptest.NewServer(served.Handler(served.Options{Source: empty}))
	defer server.Close()
	defer server.CloseClientConnections()
	b.do(chromedp.Navigate(server.URL), chromedp.WaitReady("#panels"))
	m, c := monitor.New(), monitor.Cursor{}
	id := m.Begin(0, monitor.Info{Label: "a day", Problem: "membrane", N: []int{32}, Peers: 4, Tolerance: 1e-9})
	heap := func() float64 {
		var used float64
		b.do(heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
			used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
			return err
		}))
		return used
	}
	const day, hours, perHour, parts = 24 * 36000, 24, 36000, 6 // ten observations a second
	var after []float64
	for hour := range hours {
		for part := range parts {
			for i := range perHour / parts {
				n := hour*perHour + part*perHour/parts + i
				m.Add(id, monitor.Progress{Elapsed: time.Duration(n) * 100 * time.Millisecond, Sweep: float64(n),
					Residual: math.Exp(-float64(n) / day)})
			}
			m.Add(id, monitor.Peers{{Sweep: float64(hour), Relaxing: float64(part)}, {}, {}, {}})
			text, err := json.Marshal(m.Next(&c))
			require.NoError(t, err)
			b.do(chromedp.Evaluate(fmt.Sprintf("applyIncrement(model, %s); draw()", text), nil))
		}
		after = append(after, heap())
	}
	require.Less(t, eval[int](b, "selected().samples.length"), monitor.MaxSamples)
	require.Less(t, after[hours-1], 1.25*after[2]+1<<20, "%.0f", after)
	t.Logf("bytes after each hour: %.0f", after)
}

// Without WebGL the surface is drawn on a canvas.
func TestSurfaceWithoutWebGL(t *testing.T) {
	b := open(t)
	name := filepath.Join(t.TempDir(), "run.html")
	solve(t, "solve", "membrane", "--n", "16", "--peers", "1", "--in-process", "--report", name)
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`HTMLCanvasElement.prototype.getContext = (old =>
			function (kind, ...rest) { return kind === "webgl" ? null : old.call(this, kind, ...rest); })(HTMLCanvasElement.prototype.getContext)`).Do(ctx)
		return err
	}), chromedp.Navigate("file://"+name), chromedp.WaitVisible("#n-residual"))
	b.until("byId('surface').dataset.by === 'canvas' && byId('surface').dataset.triangles > 50")
	require.False(t, eval[bool](b, blank+"(byId('surface'))"))
	before := eval[string](b, "byId('surface').toDataURL()")
	b.do(chromedp.Focus("#surface", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	require.NotEqual(t, before, eval[string](b, "byId('surface').toDataURL()"))
}

// TestPicture takes the picture of docs/page.md.
func TestPicture(t *testing.T) {
	if *picture == "" {
		t.Skip("give -picture FILE")
	}
	b := open(t)
	name := filepath.Join(t.TempDir(), "run.html")
	solve(t, "compare", "membrane", "--n", "32", "--model", "graphene-eth", "--machines", "8", "--scheme", "sync,async",
		"--report", name)
	var png []byte
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: "light"}}),
		chromedp.Navigate("file://"+name), chromedp.WaitVisible("#n-residual"))
	b.until("byId('surface').dataset.triangles > 100")
	b.do(chromedp.EmulateViewport(1100, 1750), chromedp.CaptureScreenshot(&png))
	require.Less(t, len(png), 200<<10)
	require.NoError(t, os.WriteFile(*picture, png, 0o644))
}
