package software_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
)

// transfer sends a message and polls both ends.
func (l *connection) transfer(
	t tester, send []verbs.SendRequest, receive []verbs.ReceiveRequest, got []verbs.Completion,
) {
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

// transfers returns the messages of the benchmark and of the test of allocations.
func (l *connection) transfers(bytes int) map[string]struct {
	send    []verbs.SendRequest
	receive []verbs.ReceiveRequest
} {
	a, b := &l.ends[0], &l.ends[1]
	send := verbs.SendRequest{
		ID: 1, Operation: verbs.Send, Elements: a.element(0, bytes), Signaled: true,
		RemoteAddr: b.region.Addr(), RemoteKey: b.region.RemoteKey(),
	}
	write := send
	write.Operation = verbs.Write
	receive := []verbs.ReceiveRequest{{ID: 2, Elements: b.element(0, bytes)}}
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
					l := openConnection(b, software.NewFabric(software.Config{}), tr, 16, timers{14, 7, 12, 7})
					s := l.transfers(n)[name]
					var got [4]verbs.Completion
					b.SetBytes(int64(n))
					b.ReportAllocs()
					for b.Loop() {
						l.transfer(b, s.send, s.receive, got[:])
					}
				})
			}
		}
	}
}

// Messages of any kind do not allocate.
func TestAllocations(t *testing.T) {
	for _, tr := range []verbs.Transport{verbs.RC, verbs.UC} {
		l := openConnection(t, software.NewFabric(software.Config{MTU: 1024}), tr, 16, timers{14, 7, 12, 7})
		for name, s := range l.transfers(8128) {
			var got [4]verbs.Completion
			require.Zero(t, testing.AllocsPerRun(500, func() {
				require.NoError(t, l.ends[1].recvs.Arm())
				l.transfer(t, s.send, s.receive, got[:])
			}), "%v %s", tr, name)
		}
	}
}
