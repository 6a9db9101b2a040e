package software_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
)

// shuttle sends a message and polls both ends.
func (l *line) shuttle(t tester, send []verbs.SendRequest, receive []verbs.ReceiveRequest, got []verbs.Completion) {
	a, b := &l.ends[0], &l.ends[1]
	if len(receive) > 0 {
		if _, err := b.pair.PostReceive(receive); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.pair.PostSend(send); err != nil {
		t.Fatal(err)
	}
	n, err := a.queue.Poll(got)
	if n != 1 || err != nil || got[0].Status != verbs.StatusOK {
		t.Fatal(n, err, got[0].Status)
	}
	if n, err = b.recvs.Poll(got); n != len(receive) || err != nil {
		t.Fatal(n, err)
	}
}

// shuttles are the kinds of messages that the benchmark and the test of allocations send.
func (l *line) shuttles(bytes int) map[string]struct {
	send    []verbs.SendRequest
	receive []verbs.ReceiveRequest
} {
	a, b := &l.ends[0], &l.ends[1]
	send := verbs.SendRequest{ID: 1, Operation: verbs.Send, Elements: a.piece(0, bytes), Signaled: true, RemoteAddr: b.region.Addr(), RemoteKey: b.region.RemoteKey()}
	write := send
	write.Operation = verbs.Write
	receive := []verbs.ReceiveRequest{{ID: 2, Elements: b.piece(0, bytes)}}
	return map[string]struct {
		send    []verbs.SendRequest
		receive []verbs.ReceiveRequest
	}{
		"send":  {[]verbs.SendRequest{send}, receive},
		"write": {[]verbs.SendRequest{write}, nil},
	}
}

func BenchmarkMessage(b *testing.B) {
	for _, tr := range []verbs.Transport{verbs.RC, verbs.UC} {
		for _, name := range []string{"send", "write"} {
			for _, n := range []int{8, 8128, 65536} {
				b.Run(fmt.Sprintf("%v/%s/%d", tr, name, n), func(b *testing.B) {
					l := join(b, software.NewFabric(software.Config{}), tr, 16, timers{14, 7, 12, 7})
					s := l.shuttles(n)[name]
					var got [4]verbs.Completion
					b.SetBytes(int64(n))
					b.ReportAllocs()
					for b.Loop() {
						l.shuttle(b, s.send, s.receive, got[:])
					}
				})
			}
		}
	}
}

// TestAllocations: a message that arrives costs no memory, whatever its kind.
func TestAllocations(t *testing.T) {
	for _, tr := range []verbs.Transport{verbs.RC, verbs.UC} {
		l := join(t, software.NewFabric(software.Config{MTU: 1024}), tr, 16, timers{14, 7, 12, 7})
		for name, s := range l.shuttles(8128) {
			var got [4]verbs.Completion
			require.Zero(t, testing.AllocsPerRun(500, func() {
				require.NoError(t, l.ends[1].recvs.Arm())
				l.shuttle(t, s.send, s.receive, got[:])
			}), "%v %s", tr, name)
		}
	}
}
