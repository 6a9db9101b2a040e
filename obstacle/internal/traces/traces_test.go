package traces

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/trace"
)

// pairOfNodes returns two nodes that have exchanged messages. Node b started skew nanoseconds after a, and the clock of
// its host is wrong by a minute. Every message takes 100 µs, one in ten 300 µs.
func pairOfNodes(skew int64, pings bool) (a, b *trace.Node) {
	o := trace.Options{Bytes: trace.MinBytes, FrameBytes: 32}
	ra, rb := trace.NewRing(o), trace.NewRing(o)
	layout := trace.Layout{
		Session: 1, WAN: true, Network: "ether", Column: "sync inter ether", Protocols: []string{"SequencedSegment"},
		Fields: []trace.Field{{Protocol: "SessionHeader", Name: "session.session", Offset: 0, Length: 4},
			{Protocol: "SequencedSegment", Name: "sequenced.number", Offset: 4, Length: 4}},
		HeaderBytes: 8, Local: 7, Remote: 9,
	}
	sa := trace.Source{Ring: ra, Session: ra.Session("s", "b")}
	sb := trace.Source{Ring: rb, Session: rb.Session("s", "a")}
	ra.Layout(layout)
	layout.Local, layout.Remote = 9, 7
	rb.Layout(layout)
	if pings {
		ra.PingSent(1000, "b", 1)
		rb.PingReflected(1000+50_000-skew, "a", 1)
		ra.PingAnswered(1000+100_000, "b", 1)
	}
	send := func(from, to trace.Source, at, arrives int64, number uint32) {
		p := from.Add(at, trace.Send)
		p.Number, p.Tag, p.Bytes, p.Value, p.Count = uint64(number), 3, 800, number, uint16(number)
		p.Window, p.InFlight = 1000, 400
		o := from.Add(at, trace.SegmentOut)
		o.Number, o.Count, o.Bytes, o.Window, o.InFlight = uint64(number), 1, 816, 1000, 1216
		header := []byte{0, 0, 0, 7, 0, 0, 0, byte(number)}
		if from.Ring == ra {
			header[3] = 9
		}
		from.Ring.Frame(header, []byte("payload"))
		i := to.Add(arrives, trace.SegmentIn)
		i.Number, i.Count, i.Bytes = uint64(number), 1, 816
		to.Ring.Frame(header, []byte("payload"))
		q := to.Add(arrives, trace.Receive)
		q.Number, q.Tag, q.Bytes, q.Value = uint64(number), 3, 800, number
		from.Add(at+500_000, trace.Accepted).Number = uint64(number)
	}
	for i := range uint32(20) {
		at, took := int64(1_000_000+int64(i)*1_000_000), int64(100_000)
		if i%10 == 0 {
			took = 300_000
		}
		send(sa, sb, at, at+took-skew, i+1)
		send(sb, sa, at-skew, at+took, i+1)
	}
	l := sa.Add(30_000_000, trace.Loss)
	l.Number, l.Count, l.Cause = 5, 2, trace.ByTimeout
	sa.Add(30_000_000, trace.IdleRestart)
	a = ra.Snapshot(40_000_000, trace.Node{Name: "a", Run: "r", Rails: []string{"ether"}, Began: 1e18})
	b = rb.Snapshot(40_000_000, trace.Node{Name: "b", Run: "r", Rails: []string{"ether"}, Began: 1e18 + skew + 60e9})
	return a, b
}

func TestClocksAreComparedByWhatWasExchanged(t *testing.T) {
	for _, skew := range []int64{0, 12_345_678, -98_765_432_100} {
		for _, pings := range []bool{false, true} {
			a, b := pairOfNodes(skew, pings)
			s := Of(a, b)
			require.Len(t, s.Messages, 40)
			require.InDelta(t, skew, s.Offsets[1]-s.Offsets[0], 1)
			for _, m := range s.Messages {
				sent, got := &s.Nodes[m.From].Records[m.Sent], &s.Nodes[m.To].Records[m.Unread]
				require.Equal(t, sent.Value, got.Value)
				require.Greater(t, s.Time(m.To, got), s.Time(m.From, sent))
			}
			if pings {
				require.EqualValues(t, 50_000, s.Uncertain[1])
			} else {
				require.EqualValues(t, 100_000, s.Uncertain[1])
			}
		}
	}
}

func TestProcessesOfAHostShareItsClock(t *testing.T) {
	a, b := pairOfNodes(5_000_000, false)
	a.Host, b.Host = "h", "h"
	b.Began = a.Began + 5_000_123
	s := Of(a, b)
	require.EqualValues(t, 5_000_123, s.Offsets[1]-s.Offsets[0])
	b.Began = a.Began + 60_000_000_000 // it was set between the two starts: no message arrives before it was sent
	s = Of(a, b)
	require.InDelta(t, 5_000_000, s.Offsets[1]-s.Offsets[0], 100_000)
}

func TestNodesWithoutMessagesHaveTheClockOfTheirHost(t *testing.T) {
	a, b := pairOfNodes(0, false)
	b.Name, b.Sessions = "c", []trace.Session{{}, {Name: "s", Peer: "d"}}
	s := Of(a, b)
	require.Empty(t, s.Messages)
	require.EqualValues(t, 60e9, s.Offsets[1]-s.Offsets[0])
	require.EqualValues(t, -1, s.Uncertain[1])
}

func TestStats(t *testing.T) {
	a, b := pairOfNodes(777, true)
	st := Of(a, b).Stats()
	require.Len(t, st.Directions, 2)
	d := st.Directions[0]
	require.Equal(t, "a", d.From)
	require.Equal(t, "b", d.To)
	require.EqualValues(t, 20, d.Writes)
	require.EqualValues(t, 16000, d.Bytes)
	require.Equal(t, []Size{{800, 20}}, d.Sizes)
	require.InDelta(t, 1e-3, d.Gap.Median, 1e-9)
	require.InDelta(t, 100e-6, d.Delay.Median, 1e-8)
	require.InDelta(t, 300e-6, d.Delay.P99, 1e-8)
	require.InDelta(t, 500e-6, d.Accepted.Mean, 1e-9)
	require.Equal(t, 20, d.Accepted.Count)
	require.Equal(t, 1000.0, d.Window)
	require.Equal(t, 200.0, d.Excess, "400 in flight and 800 of its own, in a window of 1000")
	require.Equal(t, Losses{Timeouts: 2}, d.Lost)
	require.EqualValues(t, 1, d.IdleRestarts)
	require.EqualValues(t, 20, d.Segments)
	require.Equal(t, Traffic{Connections: 1, Writes: 40, Bytes: 32000}, st.WAN)
	require.Zero(t, st.LAN)
	var text, dot bytes.Buffer
	st.Text(&text)
	require.Contains(t, text.String(), "20 × 800")
	require.NoError(t, st.Dot(&dot))
	require.Contains(t, dot.String(), `"a" -- "b" [color=red, label="40 writes, 32000 B"];`)
	_, err := json.Marshal(st)
	require.NoError(t, err)
}

func TestFilesAreReadTogether(t *testing.T) {
	a, b := pairOfNodes(777, true)
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	whole := trace.Append(nil, b)
	require.NoError(t, os.WriteFile(names[0], trace.Append(nil, a), 0o600))
	require.NoError(t, os.WriteFile(names[1], whole[:len(whole)-600], 0o600))
	s, err := Read(names, os.ReadFile)
	require.NoError(t, err)
	require.Equal(t, names[1:], s.Truncated)
	require.NotEmpty(t, s.Messages)
	var text bytes.Buffer
	require.NoError(t, s.Text(&text))
	require.Equal(t, len(a.Records)+len(s.Nodes[1].Records), strings.Count(text.String(), "\n"))
	require.NoError(t, os.WriteFile(names[0], trace.Append(nil), 0o600))
	_, err = Read(names[:1], os.ReadFile)
	require.ErrorContains(t, err, "no node was recorded")
}

// FuzzExports writes whatever a file holds in every format.
func FuzzExports(f *testing.F) {
	a, b := pairOfNodes(777, true)
	f.Add(trace.Append(nil, a, b))
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, _ := trace.Parse(data)
		if len(nodes) == 0 {
			return
		}
		s := Of(nodes...)
		var out bytes.Buffer
		for _, write := range Formats() {
			_ = write(s, &out)
		}
		st := s.Stats()
		st.Text(&out)
		require.NoError(t, st.Dot(&out))
	})
}
