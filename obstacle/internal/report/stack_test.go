package report

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

func TestLiveText(t *testing.T) {
	sync := []string{"TransportDriver", "Synchronous", "ReliableFIFO"}
	l := Live{Problem: "membrane", Scheme: "async", Peers: 2, Seconds: 1.5, Sweep: 12, Residual: 0.25, Sessions: []Session{
		{From: 0, To: 1, RTT: 2e-4, Channel: rendezvous.Channel{
			Name: "agree/0-1", Column: "sync intra ether", Locality: "same host", Why: "w", Composition: sync, MessagesSent: 3,
			FrameBytes: 1200,
			Network:    "ether", NetworkWhy: "another user",
		}},
		{From: 0, To: 1, RTT: nullable.NaN(), Channel: rendezvous.Channel{
			Name: "halo/0-1", Column: "async intra ether", Locality: "same host", Why: "w", Epoch: 2, Changes: 1,
			Network: "shm", NetworkWhy: "up at both ends",
			Composition: []string{"TransportDriver", "Asynchronous", "Parity"}, Protection: []string{"Seal"},
			Distance: "far", Lossy: true,
		}},
		{From: 1, To: 0, RTT: nullable.NaN(), Channel: rendezvous.Channel{
			Name: "agree/0-1", Column: "sync intra ether", Locality: "same host", Why: "w", Composition: sync,
			Network: "ether", PathDown: "nothing is acknowledged",
		}},
	}}
	var out bytes.Buffer
	l.Text(&out)
	require.Equal(t, `membrane, async, 2 peers: sweep 12, 1.5 s, residual 2.500e-01
micro-protocol   [1]  [2]
TransportDriver  x    x
Synchronous      x    
Asynchronous          x
ReliableFIFO     x    
Parity                x
[1] sync intra ether, same host, network ether
    agree/0-1, at peer 0: w; another user, round trip 0.2 ms, frames of up to 1200 bytes; epoch 0, 0 changes, 3 messages sent, 0 received
    agree/0-1, at peer 1: w; the data path is down: nothing is acknowledged; epoch 0, 0 changes, 0 messages sent, 0 received
[2] async intra ether, same host (measured: far) (high loss), network shm; over Seal
    halo/0-1, at peer 0: w; epoch 2, 1 change, 0 messages sent, 0 received
`, out.String())

	out.Reset()
	(&Live{Problem: "p", Scheme: "sync", Peers: 1, Residual: nullable.NaN()}).Text(&out)
	require.Equal(t, "p, sync, 1 peer: 0.0 s, residual ?\nno session yet\n", out.String())
}

// Any JSON of a run, from a file or from another process, is shown or refused.
func FuzzLive(f *testing.F) {
	var s Session
	s.Name, s.Column, s.Composition, s.Why = "halo/0-1", "async intra ether", []string{"Resize", "x"}, "w"
	whole, err := json.Marshal(Live{Problem: "membrane", Scheme: "async", Peers: 2, Seconds: 1, Sweep: 3, Sessions: []Session{s, s}})
	require.NoError(f, err)
	f.Add(whole)
	for _, number := range []string{"9223372036854775807", "-1", "18446744073709551615", "1e308", "NaN", "null", "-9223372036854775808"} {
		f.Add(regexp.MustCompile(`:\d+`).ReplaceAll(whole, []byte(":"+number)))
	}
	f.Add([]byte(`{"sessions": [null, {"composition": null}, {"composition": [null, ""]}], "relative_residual": null}`))
	f.Add([]byte(`{"peers": -1, "seconds": -1e308, "sessions": {}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLive(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		l.Text(&out)
		require.Less(t, out.Len(), 1000+100*len(text)*(1+len(l.Sessions)))
	})
}
