//go:build linux

package obstacle_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// attackMark is the type of service of the attacker's own packets, by which it recognises them.
const attackMark = 4

// attacker is on the path between two hosts: it reads every packet, changes some and repeats others with their
// addresses.
type attacker struct {
	needles [][]byte
	found   atomic.Int64 // packets that hold a needle
	changed atomic.Int64
	packets map[[4]byte]int // by destination
	again   chan []byte
	rand    *rand.Rand
}

func newAttacker(needles [][]byte) *attacker {
	return &attacker{
		needles: needles, packets: map[[4]byte]int{}, again: make(chan []byte, 64), rand: rand.New(rand.NewPCG(1, 2)),
	}
}

// watch is the Pick of the link. It drops nothing. It changes one packet of 20 to each host, and repeats four.
func (a *attacker) watch(ip []byte) bool {
	if ip[0]>>4 != 4 || ip[9] != syscall.IPPROTO_UDP || ip[1] == attackMark {
		return false
	}
	for _, n := range a.needles {
		if bytes.Contains(ip, n) {
			a.found.Add(1)
		}
	}
	header := int(ip[0]&15) * 4
	to := [4]byte(ip[16:20])
	a.packets[to]++
	switch n := a.packets[to] % 20; {
	case n == 0: // change a byte; a UDP datagram over IPv4 needs no checksum
		at := len(ip) - 1 // in the authentication tag
		if a.packets[to]%40 == 0 {
			at = header + 8 + a.rand.IntN(len(ip)-header-8)
		}
		ip[at] ^= 1 << a.rand.IntN(8)
		ip[header+6], ip[header+7] = 0, 0
		a.changed.Add(1)
	case n%5 == 0 || n == 1:
		select {
		case a.again <- bytes.Clone(ip):
		default:
		}
	}
	return false
}

// repeat sends packets again from the host that sent them.
func (a *attacker) repeat(t *testing.T, ends [2]netlab.End, done <-chan struct{}) {
	var raw [2]int
	for i, e := range ends {
		require.NoError(t, e.Host.Do(func() (err error) {
			raw[i], err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.IPPROTO_RAW)
			return err
		}))
		t.Cleanup(func() { syscall.Close(raw[i]) })
	}
	go func() {
		for {
			select {
			case <-done:
				return
			case ip := <-a.again:
				ip[1] = attackMark
				from := 0
				if bytes.Equal(ip[12:16], ends[1].IPv4.AsSlice()) {
					from = 1
				}
				_ = syscall.Sendto(raw[from], ip, 0, &syscall.SockaddrInet4{Addr: [4]byte(ip[16:20])})
			}
		}
	}()
}

// needlesOf returns bytes that a halo of the first sweeps must contain: values on both sides of the cut between two
// slabs.
func needlesOf(t *testing.T, p *problem.Problem) [][]byte {
	var out [][]byte
	for sweeps := iterate.Iteration(1); sweeps <= 3; sweeps++ {
		s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-12, 0, 0, sweeps)
		require.NoError(t, err)
		n := p.N
		for _, z := range []int{n[2]/2 - 1, n[2] / 2} {
			var row []byte
			for x := n[0]/2 - 2; x < n[0]/2+2; x++ {
				row = binary.LittleEndian.AppendUint64(row, math.Float64bits(s.U[x+n[0]*(n[1]/2+n[1]*z)]))
			}
			out = append(out, row)
		}
	}
	return out
}

// An attacker on the path between two hosts cannot read halos, and cannot change the answer by changing or repeating
// datagrams, which are counted.
func TestAttackOnTheWire(t *testing.T) {
	const n, tol = 10, 1e-5
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	for _, protect := range []string{"auto", "never"} {
		t.Run(protect, func(t *testing.T) {
			lab := netlab.New(t)
			thief := newAttacker(needlesOf(t, p))
			pick := thief.watch
			if protect == "never" { // the attacker only reads, and finds the values
				pick = func(ip []byte) bool {
					for _, k := range thief.needles {
						if bytes.Contains(ip, k) {
							thief.found.Add(1)
						}
					}
					return false
				}
			}
			c := netlab.Conditions{Delay: 50 * time.Microsecond, Pick: pick}
			link := lab.Emulate(lab.Host("a"), lab.Host("b"), netlab.Emulation{Forth: c, Back: c})
			done := make(chan struct{})
			thief.repeat(t, [2]netlab.End{link.A, link.B}, done)
			defer close(done)
			at, secret := filepath.Join(t.TempDir(), "u.npy"), secretFile(t, "the secret of this run")
			r := startIn(t, link.A.Host.Do, "solve", "membrane", "--n", fmt.Sprint(n), "--tol", fmt.Sprint(tol), "--peers", "2", "--protect", protect,
				"--suspect", "10m", "--rendezvous", net.JoinHostPort(link.A.IPv4.String(), "0"), "--secret-file", secret, "--out", at, "--format", "json")
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			var peers []*running
			for _, e := range []netlab.End{link.A, link.B} {
				peers = append(peers, startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret))
			}
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			require.Equal(t, oracle.U, u)
			if protect == "never" {
				require.Positive(t, thief.found.Load(), "without protection nothing was found: the search is wrong")
				require.Empty(t, s.Sessions[0].Protection)
				return
			}
			require.Zero(t, thief.found.Load(), "plain text on the wire")
			require.NotEmpty(t, s.Sessions[0].Protection)
			require.Positive(t, thief.changed.Load())
			require.Positive(t, s.Refused["frame.forged"], "%v", s.Refused)
			require.Positive(t, s.Refused["frame.replayed"], "%v", s.Refused)
			for _, p := range peers {
				require.Equal(t, 0, p.wait(patience))
				p.said(`"protection":\["SessionHeader","AEAD","AntiReplay"\].*"session open"`)
				p.said(`"frame.forged":\d+.*refused what did not come from a peer of this run`)
			}
		})
	}
}

// A peer with another --protect refuses the run, both ends report it, and another peer replaces it.
func TestDifferentProtection(t *testing.T) {
	r, address, secret := waiting(t, "solve", "membrane", "--n", "8", "--peers", "1", "--protect", "never")
	p := start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1", "--protect", "always")
	require.Equal(t, 2, p.wait(patience))
	p.said("different protection: the run has --protect never, this peer --protect always")
	r.said("different protection: .*the run waits for a replacement")
	p = start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1", "--protect", "never")
	require.Equal(t, 0, p.wait(patience))
	require.Equal(t, 0, r.wait(patience))
}
