//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/await"
)

// TestForeignPeer exchanges messages with rdma-core's own programs. The two ends exchange LID, QPN,
// PSN and GID as text over TCP. The connecting end sends first.
func TestForeignPeer(t *testing.T) {
	name, _, _ := strings.Cut(os.Getenv("VERBS_DEVICES"), ",")
	if name == "" {
		t.Skip("VERBS_DEVICES names no device: make verbs runs this in a guest")
	}
	gid, _ := strconv.Atoi(os.Getenv("VERBS_GID"))
	for transport, program := range map[verbs.Transport]string{verbs.RC: "ibv_rc_pingpong", verbs.UC: "ibv_uc_pingpong"} {
		t.Run(program, func(t *testing.T) {
			const port, rounds = 18600, 200
			server := exec.Command(program, "-d", name, "-g", strconv.Itoa(gid), "-p", strconv.Itoa(port),
				"-n", strconv.Itoa(rounds), "-s", strconv.Itoa(pongBytes))
			out := new(bytes.Buffer)
			server.Stdout, server.Stderr = out, out
			require.NoError(t, server.Start())
			defer server.Process.Kill()
			p := newPong(t, name, gid, transport)
			p.exchangeAddresses(t, port, gid)
			for i := range rounds {
				p.round(t, i)
			}
			require.NoError(t, server.Wait(), "%s", out)
			require.Contains(t, out.String(), fmt.Sprintf("%d iters", rounds))
			t.Logf("%s", out)
		})
	}
}

const (
	pongBytes = 4096
	pongDepth = 8
	pongPSN   = 0x123456
)

// pong is this end. It sends from the first page of its memory and receives into the rest.
type pong struct {
	device    verbs.Device
	transport verbs.Transport
	queue     verbs.CompletionQueue
	region    verbs.Region
	pair      verbs.Pair
	memory    []byte
	lid       uint16
}

func newPong(t *testing.T, name string, gid int, transport verbs.Transport) *pong {
	d, err := New().Open(name)
	require.NoError(t, err)
	p := &pong{device: d, transport: transport}
	info, err := d.Port(1)
	require.NoError(t, err)
	p.lid = info.LID
	m, err := d.AllocDomain()
	require.NoError(t, err)
	p.queue, err = d.CreateQueue(64, nil)
	require.NoError(t, err)
	p.memory, err = verbs.Allocate((1 + pongDepth) * pongBytes)
	require.NoError(t, err)
	p.region, err = m.Register(p.memory, verbs.LocalWrite)
	require.NoError(t, err)
	p.pair, err = m.CreatePair(verbs.PairConfig{
		Transport: transport, Send: p.queue, Receive: p.queue,
		SendRequests: 4, ReceiveRequests: pongDepth, SendElements: 1, ReceiveElements: 1,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range []io.Closer{p.pair, p.region, p.queue, m, d} {
			require.NoError(t, c.Close())
		}
		require.NoError(t, verbs.Free(p.memory))
	})
	return p
}

// exchangeAddresses exchanges addresses and connects the pairs. Receives are posted before.
func (p *pong) exchangeAddresses(t *testing.T, port, gid int) {
	require.NoError(t, p.pair.Modify(verbs.Attributes{
		Mask: verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess, State: verbs.Init, Port: 1,
	}))
	for i := range pongDepth {
		p.postReceive(t, i)
	}
	var c net.Conn
	await.Until(t, func() (up bool) {
		var err error
		c, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err == nil
	}, "the foreign end to listen")
	defer c.Close()
	mine, err := p.device.GID(1, gid)
	require.NoError(t, err)
	_, err = fmt.Fprintf(c, "%04x:%06x:%06x:%x\x00", p.lid, p.pair.Number(), pongPSN, mine.Addr.As16())
	require.NoError(t, err)
	answer := make([]byte, len("0000:000000:000000:")+32+1)
	_, err = io.ReadFull(c, answer)
	require.NoError(t, err)
	var lid, number, psn uint32
	var wire string
	_, err = fmt.Sscanf(strings.TrimRight(string(answer), "\x00"), "%x:%x:%x:%s", &lid, &number, &psn, &wire)
	require.NoError(t, err)
	p.join(t, uint16(lid), number, psn, wire, gid)
	_, err = c.Write([]byte("done\x00"))
	require.NoError(t, err)
}

func (p *pong) join(t *testing.T, lid uint16, number, psn uint32, wire string, gid int) {
	var to [16]byte
	for i := range to {
		b, err := strconv.ParseUint(wire[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		to[i] = byte(b)
	}
	receive := verbs.Attributes{
		Mask:  verbs.MaskState | verbs.MaskPath | verbs.MaskPathMTU | verbs.MaskRemote | verbs.MaskReceivePSN,
		State: verbs.ReadyToReceive, PathMTU: 1024, Remote: number, ReceivePSN: psn,
		Path: verbs.Path{LID: lid, Global: true, Destination: netip.AddrFrom16(to), SourceIndex: gid, HopLimit: 1},
	}
	send := verbs.Attributes{Mask: verbs.MaskState | verbs.MaskSendPSN, State: verbs.ReadyToSend, SendPSN: pongPSN}
	if p.transport == verbs.RC {
		receive.Mask |= verbs.MaskPendingReads | verbs.MaskRNRTimer
		receive.PendingReads, receive.RNRTimer = 1, 12
		send.Mask |= verbs.MaskTimeout | verbs.MaskRetries | verbs.MaskRNRRetries | verbs.MaskInitiatedReads
		send.Timeout, send.Retries, send.RNRRetries, send.InitiatedReads = 14, 6, 7, 1
	}
	require.NoError(t, p.pair.Modify(receive))
	require.NoError(t, p.pair.Modify(send))
}

func (p *pong) postReceive(t *testing.T, i int) {
	at := verbs.Element{Addr: p.region.Addr() + uint64(1+i)*pongBytes, Length: pongBytes, Key: p.region.LocalKey()}
	_, err := p.pair.PostReceive([]verbs.ReceiveRequest{{ID: uint64(i), Elements: []verbs.Element{at}}})
	require.NoError(t, err)
}

// round sends one message and receives one. The foreign end receives into the buffer that it sends
// from, so that it returns the message.
func (p *pong) round(t *testing.T, n int) {
	sent := p.memory[:pongBytes]
	for i := range sent {
		sent[i] = byte(n + i*7)
	}
	from := verbs.Element{Addr: p.region.Addr(), Length: pongBytes, Key: p.region.LocalKey()}
	send := verbs.SendRequest{ID: 99, Operation: verbs.Send, Elements: []verbs.Element{from}, Signaled: true}
	_, err := p.pair.PostSend([]verbs.SendRequest{send})
	require.NoError(t, err)
	var got [1]verbs.Completion
	for done := 0; done < 2; {
		k, err := p.queue.Poll(got[:])
		require.NoError(t, err)
		if k == 0 {
			continue
		}
		done++
		require.Equal(t, verbs.StatusOK, got[0].Status, "%v", got[0].Status)
		if got[0].Kind == verbs.Sent {
			continue
		}
		require.EqualValues(t, pongBytes, got[0].Bytes)
		page := p.memory[(1+got[0].ID)*pongBytes:][:pongBytes]
		require.True(t, bytes.Equal(sent, page), "round %d", n)
		clear(page)
		p.postReceive(t, int(got[0].ID))
	}
}
