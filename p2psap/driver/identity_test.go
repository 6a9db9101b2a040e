package driver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/shm"
)

func identity(t *testing.T, key Key) *Identity {
	t.Helper()
	i, err := NewKeyIdentity(key, "test")
	require.NoError(t, err)
	return i
}

// theKey is the key of the run, otherKey that of another run.
var theKey, otherKey = Key{1}, Key{2}

// known gives a node the identity of the run.
func known(p p2psap.Protection) func(*Config) {
	return func(c *Config) {
		i, err := NewKeyIdentity(theKey, "test")
		if err != nil {
			panic(err)
		}
		c.Identity, c.Protect, c.Rails[0].Network, c.Catalog = i, p, p2psap.Ethernet, ctp.Catalog()
	}
}

func TestSealedSessions(t *testing.T) {
	a, b := start(t, "a", known(p2psap.ProtectAlways)), start(t, "b", known(p2psap.ProtectAlways))
	exchangeBothWays(t, a, b)
	sa, sb := open(t, a, b, options("x", microproto.ModeAsynchronous))
	require.Equal(t, p2psap.ProtectionStack(), sa.Info().Protection)
	require.Equal(t, p2psap.ProtectionStack(), sb.Info().Protection)
	s := a.Stats()
	require.Zero(t, s.FramesForged+s.FramesReplayed+s.FramesBeforeWindow+s.FramesUnprotected, "%+v", s)
}

// Frames over shared memory lie in memory of the other end, which this end can only read, and those over memory of one
// process in buffers that are still the sender's: they are decrypted into other memory.
func TestSealedSessionsInMemoryOfTheOtherEnd(t *testing.T) {
	memory := shm.NewMemory()
	for network, config := range map[p2psap.Network]shm.Config{
		p2psap.SharedMemory: {}, p2psap.Memory: {Memory: memory},
	} {
		t.Run(network.String(), func(t *testing.T) {
			with := func(c *Config) {
				known(p2psap.ProtectAlways)(c)
				config.Name = c.Name
				l, err := shm.Open(config)
				require.NoError(t, err)
				c.Rails = append(c.Rails, Rail{Network: network, Link: l})
			}
			a, b := start(t, "a", with), start(t, "b", with)
			exchangeBothWays(t, a, b)
			for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
				sa, sb := open(t, a, b, options(mode.String(), mode))
				require.Equal(t, network, sa.Info().Conditions.Network)
				require.Equal(t, p2psap.ProtectionStack(), sa.Info().Protection)
				data := slices.Repeat([]byte{7}, 512)
				for label := p2psap.Label(1); label <= 50; label++ {
					sent := slices.Clone(data)
					_, err := sa.Send(limit(t), 1, label, sent)
					require.NoError(t, err)
					got := p2psap.Slot{Tag: 1, Data: make([]byte, 512)}
					for a := (p2psap.Arrival{}); !a.Fresh; {
						_, err = sb.Wait(limit(t), 0)
						require.NoError(t, err)
						a, err = sb.Receive(limit(t), &got)
						require.NoError(t, err)
					}
					require.Equal(t, data, got.Data)
					require.Equal(t, data, sent)
				}
			}
			s := a.Stats()
			require.Zero(t, s.FramesForged+s.FramesReplayed+s.FramesUnprotected+s.FramesDropped, "%+v", s)
		})
	}
}

// Inside a host the control channel requires authentication, and frames are not encrypted.
func TestPlainInsideAHost(t *testing.T) {
	a, b := start(t, "a", known(p2psap.ProtectDefault)), start(t, "b", known(p2psap.ProtectDefault))
	join(t, a, b)
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	require.Nil(t, sa.Info().Protection)
}

// seenAt is a connection with a given remote address.
type seenAt struct {
	net.Conn
	address string
}

func (c seenAt) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.address))
}

// Nodes with one host identity, such as copies of a running virtual machine, whose control connection leaves
// the host protect their frames.
func TestCopiesOfAHostAreProtected(t *testing.T) {
	a, b := start(t, "a", known(p2psap.ProtectDefault)), start(t, "b", known(p2psap.ProtectDefault))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	for _, end := range []struct {
		n       *Node
		conn    net.Conn
		peer    string
		dialled string
	}{{a, far, "b", ""}, {b, near, "a", "a"}} {
		end.n.mu.Lock()
		require.NoError(t, end.n.core.Connect(end.n.now(), end.peer, ""))
		end.n.attach(seenAt{end.conn, "203.0.113.78:7"}, end.dialled)
		end.n.unlock()
	}
	require.NoError(t, a.Connect(limit(t), "b", ""))
	require.NoError(t, b.Connect(limit(t), "a", ""))
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	require.Equal(t, p2psap.ProtectionStack(), sa.Info().Protection)
	require.Equal(t, p2psap.ProtectionStack(), sb.Info().Protection)
	require.Contains(t, sa.Info().LocalityReason, "different hosts")
}

func TestProtectionNeedsAnIdentity(t *testing.T) {
	_, err := New(Config{Name: "a", Rails: []Rail{{Link: closedLink{}}}, Protect: p2psap.ProtectAuto})
	require.ErrorContains(t, err, `node "a": protection auto needs an Identity`)
	_, err = NewSaltedIdentity(nil, "test")
	require.ErrorContains(t, err, "needs a secret")
}

// A node is unprotected only if its configuration says so, and then logs a warning.
func TestPlainNodeLogsAWarning(t *testing.T) {
	_, err := New(Config{Name: "a", Rails: []Rail{{Link: closedLink{}}}})
	require.ErrorContains(t, err, `node "a" has no Identity: make one with driver.NewSaltedIdentity`)
	require.ErrorContains(t, err, "or set Config.Plain")
	_, err = New(Config{Name: "a", Rails: []Rail{{Link: closedLink{}}}, Plain: true, Identity: identity(t, theKey)})
	require.ErrorContains(t, err, `node "a" has an Identity and is Plain: choose one`)
	for _, plain := range []bool{true, false} {
		var said bytes.Buffer
		n := start(t, "a", func(c *Config) {
			c.Log = slog.New(slog.NewTextHandler(&said, nil))
			if !plain {
				c.Identity = identity(t, theKey)
			}
		})
		require.NoError(t, n.Close())
		require.Equal(t, plain, strings.Contains(said.String(), "this node is unprotected"), said.String())
	}
}

// The name of a live peer cannot be taken, by a plain node or by one with the key. The second node reports
// why it is refused.
func TestSecondNodeOfAName(t *testing.T) {
	for name, change := range map[string]func(*Config){"plain": nil, "protected": known(p2psap.ProtectAlways)} {
		t.Run(name, func(t *testing.T) {
			a, b, again := start(t, "a", change), start(t, "b", change), start(t, "b", change)
			join(t, a, b)
			sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
			err := connectOnce(t, again, "a", a.ControlAddr())
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, `the name "b" is in use by another peer, from which it still hears`)
			require.Positive(t, a.Stats().PeersRefused)
			_, err = sb.Send(limit(t), 2, 1, make([]byte, 8))
			require.NoError(t, err)
			_, err = sa.Receive(limit(t), &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
			require.NoError(t, err)
			require.NoError(t, b.Close()) // says goodbye
			require.NoError(t, again.Connect(limit(t), "a", a.ControlAddr().String()))
		})
	}
}

type closedLink struct{ microproto.Link }

func (closedLink) Close() error { return nil }

// intruder connects to the control port without the run's secret, and returns when the node has ended the
// connection.
type intruder func(t *testing.T, tcp net.Conn)

func intruders(t *testing.T) map[string]intruder {
	// first does the TLS handshake and sends a first message.
	first := func(message func(tls *tls.Conn) []byte) intruder {
		return func(t *testing.T, tcp net.Conn) {
			conn := tls.Client(tcp, &tls.Config{InsecureSkipVerify: true})
			require.NoError(t, conn.Handshake())
			_, err := conn.Write(message(conn))
			require.NoError(t, err)
		}
	}
	prove := func(i *Identity, role string) intruder {
		return first(func(conn *tls.Conn) []byte {
			p, err := i.proof(conn, role, conn.ConnectionState().PeerCertificates[0])
			require.NoError(t, err)
			return p.append(nil)
		})
	}
	purpose, err := NewKeyIdentity(theKey, "another purpose")
	require.NoError(t, err)
	return map[string]intruder{
		"another key":         prove(identity(t, otherKey), roleDialler),
		"another purpose":     prove(purpose, roleDialler),
		"the listener's role": prove(identity(t, theKey), roleListener),
		"a hello at once": first(func(*tls.Conn) []byte {
			return append([]byte{0, 0, 0, 60}, make([]byte, 60)...)
		}),
		"TLS 1.2": func(t *testing.T, tcp net.Conn) {
			require.Error(t, tls.Client(tcp, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake())
		},
		"plain bytes": func(t *testing.T, tcp net.Conn) {
			hello := append([]byte{0, 0, 0, 40}, []byte("P2\x01\x01 a hello as it was before there was TLS")...)
			_, err := tcp.Write(hello)
			require.NoError(t, err)
		},
		"a record without end": func(_ *testing.T, tcp net.Conn) {
			_, _ = tcp.Write(append([]byte{22, 3, 1, 255, 255}, make([]byte, 70_000)...))
		},
	}
}

func TestUnauthenticatedPeersGetNothing(t *testing.T) {
	a := start(t, "a", known(p2psap.ProtectAuto))
	want := uint64(0)
	for name, come := range intruders(t) {
		tcp, err := net.Dial("tcp", a.ControlAddr().String())
		require.NoError(t, err)
		come(t, tcp)
		_, _ = io.Copy(io.Discard, tcp) // returns when the node has ended the connection
		require.NoError(t, tcp.Close())
		want++
		await.Until(t, func() bool { return a.Stats().HandshakesRefused == want }, "the count of %s", name)
	}
	require.Zero(t, a.Stats().ControlIn, "something got through to the core")
	b := start(t, "b", known(p2psap.ProtectAuto))
	join(t, a, b)
}

// Silent and slow connections are bounded in number and keep no peer out: in this test no time-out would make
// room.
func TestSilentConnectionsAreBoundedInNumber(t *testing.T) {
	const bound = 8
	a := start(t, "a", func(c *Config) {
		known(p2psap.ProtectAuto)(c)
		c.Limits.PendingHellos, c.Handshake = bound, time.Hour
	})
	b := start(t, "b", known(p2psap.ProtectAuto))
	comeSilently(t, a, 5*bound)
	await.Until(t, func() bool { return a.Stats().HandshakesDisplaced >= 4*bound && waiting(a) <= bound },
		"the crowd to be bounded")
	join(t, a, b)
	require.Zero(t, a.Stats().HandshakesTimedOut)
}

// Silent connections are closed after the handshake time.
func TestSilentConnectionsAreBoundedInTime(t *testing.T) {
	const strangers = 5
	a := start(t, "a", func(c *Config) {
		known(p2psap.ProtectAuto)(c)
		c.Handshake = 50 * time.Millisecond
	})
	comeSilently(t, a, strangers)
	await.Until(t, func() bool { return a.Stats().HandshakesTimedOut == strangers && waiting(a) == 0 },
		"the end of silent connections")
}

// waiting returns the number of connections that have not authenticated.
func waiting(n *Node) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pending.Len()
}

// comeSilently opens connections to a node that say nothing, or part of a TLS record byte by byte.
func comeSilently(t *testing.T, a *Node, strangers int) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range strangers {
		tcp, err := net.Dial("tcp", a.ControlAddr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = tcp.Close() })
		if i%2 == 0 { // a slow one: part of a record, a byte at a time
			wg.Go(func() {
				pause := time.NewTicker(10 * time.Millisecond)
				defer pause.Stop()
				for _, c := range []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3} {
					if _, err := tcp.Write([]byte{c}); err != nil {
						return
					}
					select {
					case <-done:
						return
					case <-pause.C:
					}
				}
			})
		}
	}
	t.Cleanup(func() {
		close(done)
		wg.Wait()
	})
}

// A dialling end gets the reason of a refusal, and does not associate with an impostor.
func TestUnauthenticatedDialler(t *testing.T) {
	a := start(t, "a", known(p2psap.ProtectAuto))
	other := start(t, "b", func(c *Config) { c.Identity = identity(t, otherKey) })
	err := connectOnce(t, other, "a", a.ControlAddr())
	require.ErrorIs(t, err, ErrUnauthenticated)
	require.ErrorContains(t, err, "does not know the run's secret")

	plain := start(t, "A", nil) // of a lower name, so that a dials at once
	err = connectOnce(t, a, "A", plain.ControlAddr())
	require.ErrorIs(t, err, context.Canceled)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			tcp, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = tcp.Write(append(binary.BigEndian.AppendUint32(nil, 40), make([]byte, 40)...))
		}
	}()
	err = connectOnce(t, a, "B", l.Addr())
	require.ErrorContains(t, err, "does not speak TLS")
	require.ErrorContains(t, err, "the first round trip to it took")
}

// connectOnce connects until the first attempt has failed.
func connectOnce(t *testing.T, n *Node, peer string, at net.Addr) error {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Connect(ctx, peer, at.String()) }()
	await.Until(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		state, refused := n.core.Peer(peer)
		return n.dialErrs[peer] != nil || state == p2psap.PeerNew && refused != nil
	}, "an attempt to connect to %s", peer)
	cancel()
	return <-done
}

// A flood of forged, replayed or unprotected datagrams from the peer's own address costs no memory and stops
// nothing.
func TestFloodFromThePeersAddress(t *testing.T) {
	a, b := start(t, "a", known(p2psap.ProtectAlways)), start(t, "b", known(p2psap.ProtectAlways))
	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	link := b.config.Rails[0].Link.(*ether.Link)
	offer, err := a.config.Rails[0].Link.Offer("b")
	require.NoError(t, err)
	to, err := link.Accept(offer)
	require.NoError(t, err)
	h := fnv.New32a() // docs/wire.md: the run's hash, the receiver's number of the session
	_, _ = h.Write([]byte("test"))
	head := binary.BigEndian.AppendUint16(nil, uint16(h.Sum32())^uint16(h.Sum32()>>16))
	head = binary.BigEndian.AppendUint32(head, uint32(sa.id))
	flood := func(n int) {
		for i := range n {
			f := link.Acquire(1200)
			for k := range f.Data {
				f.Data[k] = byte(i + k)
			}
			f.Peer = to
			f.Data[0] = byte(1 + i%2) // p2psap.WireVersion, p2psap.SealedVersion
			f.Data[1] = 0
			copy(f.Data[2:], head)
			_, err := link.Send([]microproto.Frame{f})
			require.NoError(t, err)
		}
	}
	ctx := limit(t)
	for round := range uint64(20) {
		flood(500)
		_, err := sb.Send(ctx, 2, p2psap.Label(round), make([]byte, 8))
		require.NoError(t, err)
		got, err := sa.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
		require.NoError(t, err)
		require.Equal(t, round, got.Label)
	}
	s := a.Stats()
	require.Positive(t, s.FramesForged)
	require.Positive(t, s.FramesUnprotected)
	var reasons []string
	for _, r := range s.Refusals() {
		reasons = append(reasons, r.Reason)
		require.Positive(t, r.Count)
	}
	require.Contains(t, reasons, "frame.forged")
	require.Contains(t, reasons, "frame.unprotected")
	require.NotContains(t, reasons, "handshake.refused")
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	before := mem.HeapAlloc
	flood(3000)
	runtime.GC()
	runtime.ReadMemStats(&mem)
	require.Less(t, mem.HeapAlloc, before+8<<20)
}
