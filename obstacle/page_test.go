//go:build linux

package obstacle_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
)

// The page of a run with real peers shows a loss, and values that the peers send because somebody looks. Without its
// token it shows nothing, on loopback, too.
func TestPageOfARun(t *testing.T) {
	r := endless(t, "async", "--http", "0")
	m := r.said(`page at http://[^/]*:(\d+)/\?token=([A-Z2-7]+)`)
	base, token := "http://127.0.0.1:"+m[1], m[2]
	get := func(path, token string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(b)
	}
	for _, path := range []string{"/", "/events", "/metrics", "/field?run=0&whole"} {
		code, _ := get(path, strings.ToLower(token))
		require.Equal(t, http.StatusUnauthorized, code, path)
	}
	code, body := get("/", token)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "<title>obstacle</title>")
	code, body = get("/metrics", token)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "obstacle_peers 3")

	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/events", nil)
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer "+token)
	events, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer events.Body.Close()
	lines := bufio.NewReader(events.Body)
	var s monitor.Snapshot
	show := func(what string, is func(*monitor.Run) bool) {
		for len(s.Runs) == 0 || !is(&s.Runs[0]) {
			line, err := lines.ReadString('\n')
			require.NoError(t, err, what)
			if data, is := strings.CutPrefix(line, "data: "); is {
				var i monitor.Increment
				require.NoError(t, json.Unmarshal([]byte(data), &i))
				s.Apply(i)
			}
		}
	}
	show("the accounts of all peers", func(r *monitor.Run) bool {
		for _, p := range r.Peers {
			if p.Relaxing <= 0 || p.Sweep <= 0 || p.Waiting+p.Protocol <= 0 {
				return false
			}
		}
		return len(r.Peers) == 3 && len(r.Places) == 3 && len(r.Reads) == 4 && len(r.Sessions) >= 4
	})
	at, field := 0, ""
	await.Until(t, func() bool { at, field = get("/field?run=0&axis=2&plane=3", token); return at == http.StatusOK },
		"values of a plane")
	var v struct{ Size, First [3]int }
	require.NoError(t, json.Unmarshal([]byte(field), &v))
	require.Equal(t, [3]int{side, side, 1}, v.Size)
	require.Equal(t, 3, v.First[2])
	require.Regexp(t, regexp.MustCompile(`"u":"[A-Za-z0-9+/]{100}`), field)

	require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
	show("the loss and its end", func(r *monitor.Run) bool {
		return len(r.Marks) == 1 && r.Marks[0].Took > 0 && r.State.Epoch == 1
	})
	require.Equal(t, monitor.MarkLoss, s.Runs[0].Marks[0].Kind)
	require.Equal(t, 1, s.Runs[0].Marks[0].Rank)
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
}
