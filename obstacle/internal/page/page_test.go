package page

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
)

// evil is a name that would run in a page that shows it as markup, or ends the element that holds it.
const evil = `</script><script>document.title="owned"</script><img src=x onerror=alert(1)>`

func source() *monitor.Shared {
	m := monitor.NewShared()
	id := m.Begin(monitor.Info{Problem: evil, Label: evil, N: []int{3}, Peers: 1, Tolerance: 1e-6})
	m.Add(id, monitor.Progress{Elapsed: 1e9, Sweep: 2, Residual: 0.5})
	return m
}

type constant struct{}

func (constant) Values(_ context.Context, w Wanted) (*Values, error) {
	if w.Run != 0 {
		return nil, ErrNoValues
	}
	return &Values{N: [3]int{3, 1, 1}, Stride: [3]int{1, 1, 1}, Size: [3]int{3, 1, 1}, U: []float64{1, 2, math.NaN()},
		Lower: []float64{1, 1, 1},
		Upper: []float64{9, 2, 9}}, nil
}

func get(t *testing.T, h http.Handler, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.Host = "127.0.0.1:8080"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A request without the token gets 401. A browser that opens the address with the token gets a cookie, and is redirected
// to the address without the token.
func TestToken(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("numbers")) })
	h := Handler(Options{Source: source(), Metrics: metrics, Guard: Guard{Token: "right-token-right"}})
	for _, path := range []string{"/", "/metrics", "/events", "/field?run=0&whole", "/main.js", "/nothing"} {
		for _, with := range []func(*http.Request){
			nil,
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong-token-wrong") },
			func(r *http.Request) { r.Header.Set("Authorization", "right-token-right") },
			func(r *http.Request) { r.URL.RawQuery = "token=right-token-righ" },
			func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "obstacle_8081", Value: "right-token-right"}) },
		} {
			w := get(t, h, path, with)
			require.Equal(t, http.StatusUnauthorized, w.Code, path)
			require.NotContains(t, w.Body.String(), "numbers")
		}
	}
	w := get(t, h, "/?token=right-token-right", nil)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/", w.Header().Get("Location"))
	c := w.Result().Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, http.StatusOK, get(t, h, "/", func(r *http.Request) { r.AddCookie(c) }).Code)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer right-token-right") }
	require.Equal(t, "numbers", get(t, h, "/metrics", bearer).Body.String())
	require.Equal(t, http.StatusOK, get(t, Handler(Options{Source: source()}), "/", nil).Code, "no token is needed")
}

// A page of another site that has its name point here (DNS rebinding) is refused.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		host     string
		loopback bool
		want     int
	}{
		{"127.0.0.1:8080", true, 200}, {"localhost:9", true, 200}, {"[::1]:8080", true, 200}, {"127.3.2.1", true, 200},
		{"evil.example", true, 421}, {"evil.example:8080", false, 421}, {"localhost.evil.example", true, 421},
		{"", true, 421},
		{"10.0.0.7:8080", true, 421}, {"10.0.0.7:8080", false, 200}, {"Node1:8080", false, 200},
		{"node1.evil.example", false, 421},
	} {
		h := Handler(Options{Source: source(), Guard: Guard{Names: []string{"node1"}, Loopback: c.loopback}})
		w := get(t, h, "/", func(r *http.Request) { r.Host = c.host })
		require.Equal(t, c.want, w.Code, c.host)
	}
}

// A page of another site can link to this one, and reads nothing.
func TestPagesOfOtherSitesReadNothing(t *testing.T) {
	h := Handler(Options{Source: source(), Field: constant{}, Metrics: http.NotFoundHandler()})
	for from, code := range map[string]int{"": 200, "none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
		site := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", from) }
		require.Equal(t, code, get(t, h, "/field?run=0&axis=0&plane=0", site).Code, from)
		require.Equal(t, 200, get(t, h, "/", site).Code, from)
	}
}

// Every answer forbids scripts of others, and only what belongs to the page is served.
func TestPolicy(t *testing.T) {
	h := Handler(Options{Source: source(), Field: constant{}, Metrics: http.NotFoundHandler()})
	for path, code := range map[string]int{"/": 200, "/page.css": 200, "/main.js": 200, "/uplot.LICENSE": 404,
		"/static/main.js": 404, "/page.go": 404, "/..%2fpage.go": 404} {
		w := get(t, h, path, nil)
		require.Equal(t, code, w.Code, path)
		csp := w.Header().Get("Content-Security-Policy")
		require.Contains(t, csp, "default-src 'none'")
		require.NotContains(t, csp, "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
	}
	html := get(t, h, "/", nil).Body.String()
	require.NotRegexp(t, `<script[^>]*>[^<]`, html, "no script stands in the page")
	require.NotRegexp(t, `(?i) on[a-z]+=| style=`, html)
	for _, name := range append(scripts, styles...) {
		require.NotRegexp(t, `https?://[a-z]`,
			strings.ReplaceAll(string(file(name)), "https://github.com/leeoniya/uPlot", ""), name)
		require.NotContains(t, string(file(name)), "innerHTML =", name)
	}
	require.Equal(t, http.StatusMethodNotAllowed, func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/", nil)
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		return w.Code
	}())
	require.Equal(t, 404, get(t, Handler(Options{Metrics: http.NotFoundHandler()}), "/", nil).Code,
		"without a source there is no page")
}

// The first event holds everything.
func TestEvents(t *testing.T) {
	m := source()
	s := httptest.NewServer(Handler(Options{Source: m}))
	defer s.Close()
	answer, err := http.Get(s.URL + "/events")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	lines := bufio.NewReader(answer.Body)
	next := func() (i monitor.Increment) {
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if data, is := strings.CutPrefix(line, "data: "); is {
				require.NoError(t, json.Unmarshal([]byte(data), &i))
				return i
			}
		}
	}
	var got monitor.Snapshot
	got.Apply(next())
	require.Equal(t, evil, got.Runs[0].Info.Problem)
	m.Add(0, monitor.Progress{Elapsed: 2e9, Sweep: 3, Residual: 0.25})
	got.Apply(next())
	require.Equal(t, m.Snapshot().Runs[0].Samples, got.Runs[0].Samples)
}

// Values say where u touches an obstacle; unknown ones stay unknown.
func TestField(t *testing.T) {
	h := Handler(Options{Source: source(), Field: constant{}})
	w := get(t, h, "/field?run=0&axis=2&plane=0", nil)
	require.Equal(t, 200, w.Code)
	var v struct {
		Size       [3]int
		U, Contact string
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	contact, err := base64.StdEncoding.DecodeString(v.Contact)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 0}, contact)
	u, err := base64.StdEncoding.DecodeString(v.U)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, u[:8])
	require.Equal(t, 404, get(t, h, "/field?run=1&whole", nil).Code)
	for _, bad := range []string{"", "?run=0", "?run=0&axis=3&plane=0", "?run=0&axis=1&plane=-1", "?run=x&whole",
		"?run=0&axis=1&plane=99999999999999999999"} {
		require.Equal(t, 400, get(t, h, "/field"+bad, nil).Code, bad)
	}
	require.Equal(t, 404, get(t, Handler(Options{Source: source()}), "/field?run=0&whole", nil).Code)
}

// A report is one file, whose scripts and styles a browser allows by their hashes, and in which no text of a problem is
// markup.
func TestReport(t *testing.T) {
	v, err := constant{}.Values(t.Context(), Wanted{})
	require.NoError(t, err)
	b, err := Report(&Saved{Snapshot: source().Snapshot(), Fields: map[int]*Values{0: v}})
	require.NoError(t, err)
	html := string(b)
	require.NotContains(t, html, `<script>document.title`)
	require.NotContains(t, html, "<img")
	require.NotRegexp(t, `<(?:script|link)[^>]* (?:src|href)=`, html)
	require.NotContains(t, html, "<!--")
	for _, kind := range []string{"script", "style"} {
		all := regexp.MustCompile(`(?s)<`+kind+`>(.*?)</`+kind+`>`).FindAllStringSubmatch(html, -1)
		require.Len(t, all, map[string]int{"script": len(scripts), "style": len(styles)}[kind])
		for _, m := range all {
			sum := sha256.Sum256([]byte(m[1]))
			require.Contains(t, html, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="saved">(.*?)</script>`).FindStringSubmatch(html)
	require.NotNil(t, data)
	var saved struct{ Snapshot monitor.Snapshot }
	require.NoError(t, json.Unmarshal([]byte(data[1]), &saved))
	require.Equal(t, evil, saved.Snapshot.Runs[0].Info.Problem)
}

// asked is a field that checks what it is asked for.
type asked struct {
	constant
	t *testing.T
}

func (a asked) Values(ctx context.Context, w Wanted) (*Values, error) {
	require.GreaterOrEqual(a.t, w.Run, 0)
	require.GreaterOrEqual(a.t, w.Plane, 0)
	require.True(a.t, w.Axis >= 0 && w.Axis <= 2)
	require.True(a.t, !w.Whole || w.Axis == 0 && w.Plane == 0)
	return a.constant.Values(ctx, w)
}

// Any request is answered, and without the token by nothing of the run.
func FuzzQuery(f *testing.F) {
	const token = "0123456789abcdef"
	for _, query := range []string{
		"run=0&whole", "run=0&axis=2&plane=3", "run=9223372036854775807&axis=2&plane=9223372036854775807", "run=-1&axis=-1&plane=-1",
		"run=NaN&axis=1e300&plane=0x1", "run=-1&axis=0&plane=0", "run=0&axis=3&plane=0", "run=0;axis=1", "%zz&run=%00", "token=" + token, "token=&token=" + token,
	} {
		for _, path := range []string{"/field", "/", "/events/", "/metrics", "/main.js", "//field", "/../field", "/field/"} {
			f.Add(path, query, "127.0.0.1:8080", token)
			f.Add(path, query, "node1", "")
		}
	}
	f.Add("/field", "run=0&whole", "[::1]:9223372036854775807", "x")
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("1")) })
	f.Fuzz(func(t *testing.T, path, query, host, bearer string) {
		r := httptest.NewRequest("GET", "/", nil)
		if path == "/events" { // does not end
			path = "/"
		}
		r.URL.Path, r.URL.RawQuery, r.Host = path, query, host
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := httptest.NewRecorder()
		Handler(Options{Source: source(), Field: asked{t: t}, Metrics: metrics, Guard: Guard{Token: token, Loopback: true}}).ServeHTTP(w, r)
		knows := bearer == token || r.URL.Query().Get("token") == token
		require.True(t, knows || w.Code >= 400, "%d", w.Code)
		require.Less(t, w.Code, 500)
	})
}
