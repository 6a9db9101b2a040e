package software_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
)

// tester is a test, a benchmark, or a check of a property.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(func())
	Fatal(args ...any)
}

// connection is two connected pairs of one transport, with memory.
type connection struct {
	fabric    *software.Fabric
	transport verbs.Transport
	timers    timers
	psn       uint32 // number of the first packet
	ends      [2]endpoint
}

type endpoint struct {
	adapter *software.Adapter
	device  verbs.Device
	domain  verbs.Domain
	queue   verbs.CompletionQueue
	recvs   verbs.CompletionQueue
	channel verbs.Channel
	region  verbs.Region
	memory  []byte
	pair    verbs.Pair
	port    verbs.Port
}

// timers are the timers of an RC pair, in IBTA's codes.
type timers struct{ timeout, retries, rnrTimer, rnrRetries uint8 }

func openConnection(t tester, f *software.Fabric, tr verbs.Transport, depth int, w timers) *connection {
	t.Helper()
	t.Cleanup(func() { require.Zero(t, f.Live()) })
	return openNamed(t, f, tr.String(), tr, depth, w)
}

// openNamed is openConnection for several connections on a fabric. name distinguishes adapters.
func openNamed(t tester, f *software.Fabric, name string, tr verbs.Transport, depth int, w timers) *connection {
	t.Helper()
	l := &connection{fabric: f, transport: tr, timers: w, psn: 0xfffffe}
	for i := range l.ends {
		s := &l.ends[i]
		var err error
		s.adapter, err = f.Add(fmt.Sprintf("%s%d", name, i))
		require.NoError(t, err)
		s.device, err = f.Open(s.adapter.Name())
		require.NoError(t, err)
		s.domain, err = s.device.AllocDomain()
		require.NoError(t, err)
		s.channel, err = s.device.CreateChannel()
		require.NoError(t, err)
		s.queue, err = s.device.CreateQueue(4*depth, s.channel)
		require.NoError(t, err)
		s.recvs, err = s.device.CreateQueue(4*depth, s.channel)
		require.NoError(t, err)
		s.memory, err = verbs.Allocate(1 << 20)
		require.NoError(t, err)
		s.region, err = s.domain.Register(s.memory, verbs.LocalWrite|verbs.RemoteWrite)
		require.NoError(t, err)
		s.port, err = s.device.Port(1)
		require.NoError(t, err)
		s.pair, err = s.domain.CreatePair(verbs.PairConfig{
			Transport: tr, Send: s.queue, Receive: s.recvs, SendRequests: depth, ReceiveRequests: depth,
			SendElements: 2, ReceiveElements: 1,
		})
		require.NoError(t, err)
	}
	t.Cleanup(func() { l.close(t) })
	l.connect(t)
	return l
}

// connect takes both pairs from Reset to ReadyToSend.
func (l *connection) connect(t tester) {
	t.Helper()
	w := l.timers
	for i := range l.ends {
		s, o := &l.ends[i], &l.ends[1-i]
		steps := []verbs.Attributes{
			{
				Mask:  verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess,
				State: verbs.Init, Port: 1, Access: verbs.LocalWrite | verbs.RemoteWrite,
			},
			{
				Mask:    verbs.MaskState | verbs.MaskPath | verbs.MaskPathMTU | verbs.MaskRemote | verbs.MaskReceivePSN,
				State:   verbs.ReadyToReceive,
				PathMTU: s.port.MTU, Remote: o.pair.Number(), ReceivePSN: l.psn, Path: verbs.Path{LID: o.port.LID},
				RNRTimer: w.rnrTimer,
			},
			{
				Mask: verbs.MaskState | verbs.MaskSendPSN, State: verbs.ReadyToSend, SendPSN: l.psn,
				Timeout: w.timeout, Retries: w.retries, RNRRetries: w.rnrRetries,
			},
		}
		if l.transport == verbs.RC {
			steps[1].Mask |= verbs.MaskPendingReads | verbs.MaskRNRTimer
			steps[2].Mask |= verbs.MaskTimeout | verbs.MaskRetries | verbs.MaskRNRRetries | verbs.MaskInitiatedReads
		}
		for _, a := range steps {
			require.NoError(t, s.pair.Modify(a))
		}
	}
}

func (l *connection) close(t tester) {
	t.Helper()
	for i := range l.ends {
		s := &l.ends[i]
		require.NoError(t, s.pair.Close())
		require.NoError(t, s.queue.Close())
		require.NoError(t, s.recvs.Close())
		require.NoError(t, s.channel.Close())
		require.NoError(t, s.region.Close())
		require.NoError(t, verbs.Free(s.memory))
		require.NoError(t, s.domain.Close())
		require.NoError(t, s.device.Close())
	}
}

func (s *endpoint) element(at, n int) []verbs.Element {
	return []verbs.Element{{Addr: s.region.Addr() + uint64(at), Length: uint32(n), Key: s.region.LocalKey()}}
}
