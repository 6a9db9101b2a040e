package driver

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// openConns opens a Conn between two nodes.
func openConns(t *testing.T, a, b *Node, name string) (ca, cb *Conn) {
	t.Helper()
	return atBoth(t, a, b, func(n *Node, peer string) (*Conn, error) { return n.OpenConn(limit(t), peer, name) })
}

func joined(t *testing.T) (a, b *Node) {
	real := func(c *Config) { c.Catalog, c.Linger = ctp.Catalog(), 10*time.Second }
	a, b = start(t, "a", real), start(t, "b", real)
	join(t, a, b)
	return a, b
}

// TestConn runs the checks of golang.org/x/net for implementations of net.Conn.
func TestConn(t *testing.T) {
	a, b := joined(t)
	pipes := 0
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		pipes++
		ca, cb := openConns(t, a, b, fmt.Sprint(pipes))
		return ca, cb, func() {
			var both sync.WaitGroup
			both.Go(func() { _ = ca.Close() })
			both.Go(func() { _ = cb.Close() })
			both.Wait()
		}, nil
	})
}

// What is written arrives, in order and to the last byte, whatever the sizes of writes and reads; then io.EOF.
func TestConnCarriesAStream(t *testing.T) {
	a, b := joined(t)
	ca, cb := openConns(t, a, b, "stream")
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	sizes := []int{1, 7, 100, connChunk - 1, connChunk, connChunk + 1, 3 * connChunk, 2 * connRing}
	var writing sync.WaitGroup
	writing.Go(func() {
		for rest, i := data, 0; len(rest) > 0; i++ {
			n, err := ca.Write(rest[:min(sizes[i%len(sizes)], len(rest))])
			if err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
		if err := ca.CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	var got []byte
	for i, buffer := 0, make([]byte, 3*connChunk); ; i++ {
		n, err := cb.Read(buffer[:sizes[i%7]])
		got = append(got, buffer[:n]...)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	writing.Wait()
	require.True(t, bytes.Equal(data, got))
	_, err := ca.Write([]byte{1})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = cb.Write([]byte("answer")) // the other way is open
	require.NoError(t, err)
	require.NoError(t, cb.Close())
	answer, err := io.ReadAll(ca)
	require.NoError(t, err)
	require.Equal(t, "answer", string(answer))
	require.NoError(t, ca.Close())
	require.NoError(t, ca.Close())
	require.Equal(t, "p2psap b/stream", ca.RemoteAddr().Network()+" "+ca.RemoteAddr().String())
	require.Equal(t, "a/stream", ca.LocalAddr().String())
}

// Write copies: the caller may change its memory at once, even if the network loses what was sent.
func TestConnCopies(t *testing.T) {
	link := &muteLink{}
	a := start(t, "a", func(c *Config) {
		c.Catalog = ctp.Catalog()
		link.Link = c.Rails[0].Link.(*ether.Link)
		c.Rails[0] = Rail{Network: p2psap.Ethernet, Link: link}
	})
	b := start(t, "b", func(c *Config) { c.Catalog, c.Rails[0].Network = ctp.Catalog(), p2psap.Ethernet })
	join(t, a, b)
	ca, cb := openConns(t, a, b, "copies")
	link.mute.Store(true)
	buffer := []byte("what was written")
	_, err := ca.Write(buffer)
	require.NoError(t, err)
	clear(buffer)
	link.mute.Store(false)
	_, err = io.ReadFull(cb, buffer)
	require.NoError(t, err)
	require.Equal(t, "what was written", string(buffer))
}

// While the other end does not read, Write blocks until its deadline. It returns how many bytes the session took.
func TestConnBlocksWhileNobodyReads(t *testing.T) {
	a, b := joined(t)
	ca, cb := openConns(t, a, b, "full")
	n, err, done := 0, error(nil), make(chan struct{})
	go func() {
		defer close(done)
		n, err = ca.Write(make([]byte, 8<<20))
	}()
	await.Until(t, func() bool { return ca.socket.accepted() > connRing/connChunk }, "more messages than the ring holds")
	require.NoError(t, ca.SetWriteDeadline(time.Unix(1, 0)))
	<-done
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.Greater(t, n, connRing)
	require.Less(t, n, 8<<20)
	require.NoError(t, ca.SetWriteDeadline(time.Time{}))
	go func() { _ = ca.CloseWrite() }()
	got, err := io.Copy(io.Discard, cb)
	require.NoError(t, err)
	require.EqualValues(t, n, got)
}

// muteLink sends nothing while it is mute.
type muteLink struct {
	*ether.Link
	mute atomic.Bool
}

func (l *muteLink) Send(batch []microproto.Frame) (int, error) {
	if l.mute.Load() {
		for _, f := range batch {
			f.Release()
		}
		return len(batch), nil
	}
	return l.Link.Send(batch)
}

// If what was written cannot arrive, Close returns an error, and the other end does not read io.EOF.
func TestConnTellsOfWhatIsLost(t *testing.T) {
	t.Parallel() // it mostly waits
	link := &muteLink{}
	a := start(t, "a", func(c *Config) {
		c.Catalog, c.Linger = ctp.Catalog(), 200*time.Millisecond
		link.Link = c.Rails[0].Link.(*ether.Link)
		c.Rails[0].Link = link
	})
	b := start(t, "b", func(c *Config) { c.Catalog = ctp.Catalog() })
	join(t, a, b)
	ca, cb := openConns(t, a, b, "lost")
	_, err := ca.Write([]byte("this arrives, "))
	require.NoError(t, err)
	got := make([]byte, 14)
	_, err = io.ReadFull(cb, got)
	require.NoError(t, err)
	link.mute.Store(true)
	_, err = ca.Write([]byte("this does not"))
	require.NoError(t, err)
	require.ErrorContains(t, ca.Close(), "close p2psap a/lost->b/lost: the other end did not accept within 200ms")
	_, err = cb.Read(got)
	require.Equal(t, io.ErrUnexpectedEOF, err)
}

// The end of a node ends its streams with an error, at both ends.
func TestConnOfANodeThatEnds(t *testing.T) {
	a, b := joined(t)
	ca, cb := openConns(t, a, b, "end")
	require.NoError(t, a.Abort())
	_, err := cb.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = cb.Write(make([]byte, 1))
	require.ErrorIs(t, err, p2psap.ErrPeerClosed)
	_, err = ca.Read(make([]byte, 1))
	require.ErrorIs(t, err, p2psap.ErrClosed)
	require.NoError(t, cb.Close())
}

// encoding/gob works over a Conn in both directions at once.
func TestGobOverConn(t *testing.T) {
	type step struct {
		Number int
		Values []float64
	}
	a, b := joined(t)
	ca, cb := openConns(t, a, b, "gob")
	var ends sync.WaitGroup
	failed := errors.New("other values")
	for _, c := range []*Conn{ca, cb} {
		ends.Go(func() {
			enc, dec := gob.NewEncoder(c), gob.NewDecoder(c)
			err := error(nil)
			for i := 0; i < 100 && err == nil; i++ {
				var got step
				if err = enc.Encode(step{i, make([]float64, i*10)}); err == nil {
					err = dec.Decode(&got)
				}
				if err == nil && (got.Number != i || len(got.Values) != i*10) {
					err = failed
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	ends.Wait()
}

// Neither a Write nor a Read allocates memory in steady state.
func TestConnDoesNotAllocate(t *testing.T) {
	a, b := joined(t)
	ca, cb := openConns(t, a, b, "still")
	buffer := make([]byte, 4096)
	trip := func() {
		if _, err := ca.Write(buffer); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(cb, buffer); err != nil {
			panic(err)
		}
	}
	for range 100 {
		trip()
	}
	require.Less(t, testing.AllocsPerRun(500, trip), 1.0)
}

func TestOpenConnOfAnUnknownPeer(t *testing.T) {
	a := start(t, "a", nil)
	_, err := a.OpenConn(limit(t), "nobody", "x")
	require.ErrorContains(t, err, "nobody")
}
