//go:build linux

package obstacle_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// udpLab is two hosts with a run of two peers on each, between which a firewall may drop UDP.
type udpLab struct {
	link     *netlab.Link
	blocked  atomic.Bool
	severs   atomic.Bool   // it drops TCP, too, but that with the launcher
	port     atomic.Uint32 // of the launcher
	launcher *running
	attach   []string // arguments of an obstacle attach
	peers    []*running
}

// newUDPLab starts the run, which waits at the gate. ways are the directions that the firewall is in.
func newUDPLab(t *testing.T, ways []netlab.Direction, blocked bool, args ...string) *udpLab {
	u := &udpLab{}
	u.blocked.Store(blocked)
	drops := netlab.Conditions{Pick: func(ip []byte) bool {
		const udp = 17
		return u.blocked.Load() && (ip[0]>>4 == 4 && ip[9] == udp || ip[0]>>4 == 6 && ip[6] == udp || u.severs.Load() && u.severed(ip))
	}}
	var e netlab.Emulation
	for _, w := range ways {
		*map[netlab.Direction]*netlab.Conditions{netlab.Forth: &e.Forth, netlab.Back: &e.Back}[w] = drops
	}
	lab := netlab.New(t)
	u.link = lab.Emulate(lab.Host("a"), lab.Host("b"), e)
	secret := secretFile(t, "the secret of this run")
	closeGate(t, gate.Gate{})
	a, b := u.link.A, u.link.B
	u.launcher = startIn(t, a.Host.Do, append([]string{"solve", "membrane", "--n", "24", "--method", "richardson",
		"--peers", "2", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret, "--format", "json",
		"--log-level", "info", "--suspect", "1m"}, args...)...) // the test's thread that forwards packets may be late for a second
	address := u.launcher.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	u.port.Store(uint32(number))
	u.attach = []string{"attach", address, "--secret-file", secret}
	for seat, e := range []netlab.End{a, b} {
		u.peers = append(u.peers, startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(),
			"--secret-file", secret, "--seat", fmt.Sprint(seat), "--log-level", "info"))
	}
	u.launcher.said(`"relaxing"`)
	return u
}

// severed reports whether a packet is of TCP over IPv4, and neither from nor to the launcher.
func (u *udpLab) severed(ip []byte) bool {
	const tcp = 6
	head := int(ip[0]&15) * 4
	if ip[0]>>4 != 4 || ip[9] != tcp || len(ip) < head+4 {
		return false
	}
	launcher := uint16(u.port.Load())
	return binary.BigEndian.Uint16(ip[head:]) != launcher && binary.BigEndian.Uint16(ip[head+2:]) != launcher
}

var bothWays = []netlab.Direction{netlab.Forth, netlab.Back}

// Where a firewall drops UDP between two hosts and TCP works, the run goes on over kernel TCP, in every scheme, within a
// cluster and between clusters, in whatever direction it drops and whenever it began.
func TestUDPIsBlocked(t *testing.T) {
	t.Parallel()
	type block struct {
		scheme, where string
		ways          []netlab.Direction
		atStart       bool
	}
	for _, c := range some([]block{
		{"sync", "within", bothWays, false}, {"sync", "between", bothWays, true}, {"delay:2", "within", bothWays, true},
		{"async", "within", bothWays, true}, {"async", "between", bothWays[:1], false}, {"hybrid", "between", bothWays, false},
		{"sync", "within", bothWays[:1], true}, {"sync", "between", bothWays[1:], false},
	}) {
		t.Run(fmt.Sprint(c.scheme, " ", c.where, " ", c.ways, " ", c.atStart), func(t *testing.T) {
			t.Parallel()
			clusters := map[string]string{"within": "1", "between": "2"}[c.where]
			u := newUDPLab(t, c.ways, c.atStart, "--scheme", c.scheme, "--clusters", clusters)
			u.blocked.Store(true)
			u.launcher.open()
			u.peers[0].said("carries nothing from .*rail down")
			require.Equal(t, 0, u.launcher.wait(patience))
			s := u.launcher.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.Losses)
			for _, e := range s.Sessions {
				if e.Network == "stream" {
					require.Contains(t, e.PathDown, "carries nothing", "%d to %d", e.From, e.To)
				}
			}
		})
	}
}

// Without another network, a peer that UDP does not reach is lost for the reason that holds, and the run goes on without
// it; or it ends at --max-time with the newest blocks of all peers.
func TestUDPIsBlockedForEver(t *testing.T) {
	t.Parallel()
	for _, scheme := range schemes() {
		t.Run(scheme+" lost", func(t *testing.T) {
			t.Parallel()
			u := newUDPLab(t, bothWays, false, "--scheme", scheme, "--network", "ether", "--peer-timeout", "4s")
			u.blocked.Store(true)
			u.launcher.open()
			require.Equal(t, 0, u.launcher.wait(patience))
			s := u.launcher.solution()
			require.True(t, s.Converged)
			require.NotEmpty(t, s.Losses)
			u.launcher.said("carries nothing from")
		})
		t.Run(scheme+" stopped", func(t *testing.T) {
			t.Parallel()
			u := newUDPLab(t, bothWays, false, "--scheme", scheme, "--network", "ether", "--max-time", "6s", "--peer-timeout", "60s")
			u.blocked.Store(true)
			u.launcher.open()
			require.Equal(t, 3, u.launcher.wait(patience))
			s := u.launcher.solution()
			require.Equal(t, "time", s.Reason)
			require.Empty(t, s.Losses)
			t.Log(s.Seconds, s.Failure, s.Sweeps)
			for _, p := range s.PerPeer {
				require.False(t, p.Lost)
			}
		})
	}
}

// Where neither UDP nor TCP passes between two hosts that both reach the launcher, the launcher and an obstacle attach name
// them soon, and the run goes on without one of them.
func TestHostsThatDoNotReachEachOther(t *testing.T) {
	t.Parallel()
	u := newUDPLab(t, bothWays, false, "--scheme", "sync", "--peer-timeout", "8s")
	u.severs.Store(true)
	u.blocked.Store(true)
	u.launcher.open()
	attached := startIn(t, u.link.A.Host.Do, u.attach...)
	attached.said(`exchange nothing, although both reach this process`)
	u.launcher.said(`exchange nothing, although both reach this process: .*goes on without one of them after 8s`)
	require.Equal(t, 0, u.launcher.wait(patience))
	s := u.launcher.solution()
	require.True(t, s.Converged)
	require.NotEmpty(t, s.Losses)
	require.Contains(t, s.Losses[0].Why, "cannot be reached by peer")
}
