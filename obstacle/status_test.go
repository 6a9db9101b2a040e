//go:build linux

package obstacle_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// A run serves the compositions of its sessions.
func TestLiveCompositions(t *testing.T) {
	closeGate(t, gate.Gate{})
	r := start(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2", "--clusters", "2",
		"--scheme", "async", "--network", "ether", "--status", "127.0.0.1:0", "--http-token", "none")
	address := r.said(`status at (\S+): obstacle stack --live`)[1]
	var live report.Live
	await.Until(t, func() bool {
		s := start(t, "stack", "--live", address, "--format", "json")
		require.Equal(t, 0, s.wait(patience))
		require.NoError(t, json.Unmarshal(s.stdout.Bytes(), &live))
		return len(live.Sessions) >= 4
	}, "the run to report its sessions")
	require.Equal(t, "membrane", live.Problem)
	h := live.Sessions[1]
	require.Equal(t, "halo/0-1", h.Name)
	require.Equal(t, "async inter ether", h.Column)
	require.Contains(t, h.Composition, "DCCPAck")
	require.Equal(t, `labels of different clusters: "0" and "1"`, h.Why)
	text := start(t, "stack", "--live", address)
	require.Equal(t, 0, text.wait(patience))
	require.Regexp(t, `(?m)^DCCPAck +x`, text.stdout.String())
	require.Regexp(t, `(?m)^    halo/0-1, at peer 1: labels of different clusters`, text.stdout.String())

	// It serves nothing else, and only valid requests.
	answer, err := http.Get("http://" + address + "/debug/pprof/")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("\x16\x03\x01\x00\x00garbage\r\n\r\n"))
	require.NoError(t, err)
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(said), "400 Bad Request")

	// Silent connections do not block others.
	for range 100 {
		silent, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer silent.Close()
	}
	crowded := start(t, "stack", "--live", address)
	require.Equal(t, 0, crowded.wait(patience))

	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
	gone := start(t, "stack", "--live", address)
	require.Equal(t, 1, gone.wait(patience))
	gone.said("is obstacle solve --status running there")
}

// The state of a run is served to those who have its token alone, on loopback, too.
func TestStatusAsksForItsToken(t *testing.T) {
	const token = "0123456789abcdef"
	given := secretFile(t, token)
	for at, file := range map[string]string{"127.0.0.1:0": "", "0.0.0.0:0": given} {
		closeGate(t, gate.Gate{})
		args := []string{"solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "1", "--status", at}
		want := `status at (\S+): obstacle stack --live \S+ --http-token-file FILE, with the token (\S+) in FILE$`
		if file != "" {
			args = append(args, "--http-token-file", file)
			want = `status at ([^ ,]+)(?:, \S+)*: obstacle stack --live \S+ --http-token-file (\S+)$`
		}
		r := start(t, args...)
		said := r.said(want)
		right := file
		if file == "" {
			right = secretFile(t, said[2])
		}
		answer, err := http.Get("http://" + said[1] + "/")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
		for _, with := range [][]string{nil, {"--http-token-file", secretFile(t, "a guess at the token")}} {
			s := start(t, append([]string{"stack", "--live", said[1]}, with...)...)
			require.Equal(t, 1, s.wait(patience))
			s.said("asks for another token: give that of the run with --http-token-file FILE")
		}
		s := start(t, "stack", "--live", said[1], "--http-token-file", right, "--format", "json")
		require.Equal(t, 0, s.wait(patience))
		require.Contains(t, s.stdout.String(), `"problem":"membrane"`)
		r.signal(syscall.SIGINT)
		require.Equal(t, 3, r.wait(patience))
		r.neverSaid("everyone who can connect")
	}
}
