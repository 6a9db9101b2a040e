package keep

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// served returns the other end of a connection that a keeper serves, and a function that waits until Serve returns.
func served(t *testing.T, k *Keeper) (raw net.Conn, conn *rendezvous.Conn, end func()) {
	here, there := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Serve(rendezvous.NewConn(there, 0))
	}()
	t.Cleanup(func() { here.Close() })
	return here, rendezvous.NewConn(here, 0), func() {
		<-ended
		require.ErrorIs(t, here.SetDeadline(time.Now()), io.ErrClosedPipe, "the connection is closed")
	}
}

// prepare returns a request of process a to keeper b.
func prepare(round int) register.Message {
	return register.Message{Kind: register.Prepare, From: "a", To: "b", Base: first,
		Ballot: register.Ballot{Round: round, Proposer: "a"}}
}

// reply receives the answer to a vote.
func reply(t *testing.T, c *rendezvous.Conn) register.Message {
	t.Helper()
	m, err := c.Receive(rendezvous.KindVote)
	require.NoError(t, err)
	return m.(rendezvous.Vote).Message
}

// Messages that no keeper sends get no answer and change nothing. The connection remains.
func TestServeIgnoresInvalidMessages(t *testing.T) {
	for name, change := range map[string]func(*register.Message){
		"for another process":    func(m *register.Message) { m.To = "c" },
		"from nobody":            func(m *register.Message) { m.From = "" },
		"no ballot":              func(m *register.Message) { m.Ballot = register.Ballot{} },
		"ballot of another":      func(m *register.Message) { m.Ballot.Proposer = "c" },
		"no term":                func(m *register.Message) { m.Base = register.Term{} },
		"term of another run":    func(m *register.Message) { m.Base.Epoch = 9 },
		"no value":               func(m *register.Message) { m.Kind = register.Accept },
		"value for another term": func(m *register.Message) { m.Kind, m.Value = register.Accept, &first },
		"an answer":              func(m *register.Message) { m.Kind, m.Ballot.Proposer = register.Promise, "b" },
	} {
		t.Run(name, func(t *testing.T) {
			k := New("b", identity, rendezvous.Join{}, first)
			_, c, _ := served(t, k)
			m := prepare(5)
			change(&m)
			require.NoError(t, c.Send(rendezvous.Vote{Message: m}))
			require.NoError(t, c.Send(rendezvous.Vote{Message: prepare(1)}))
			got := reply(t, c)
			require.Equal(t, register.Promise, got.Kind)
			require.Equal(t, 1, got.Ballot.Round, "the answer is to the valid request")
			require.Nil(t, got.Value)
			require.Equal(t, first, k.Newest())
		})
	}
}

// A request on an old term is answered with the newest one.
func TestServeStatesTheNewestTerm(t *testing.T) {
	newest := after(first, "c")
	_, c, _ := served(t, New("b", identity, rendezvous.Join{}, newest))
	require.NoError(t, c.Send(rendezvous.Vote{Message: prepare(1)}))
	require.Equal(t, register.Message{Kind: register.Decided, From: "b", To: "a", Base: newest}, reply(t, c))
}

// Bytes that are no vote end the connection.
func TestServeClosesOnMalformedFrames(t *testing.T) {
	for name, frame := range map[string]string{
		"another message":   "\x00\x00\x00\x02\x0a{}",
		"an unknown kind":   "\x00\x00\x00\x02\xff{}",
		"no JSON":           "\x00\x00\x00\x02\x1e{{",
		"an unknown field":  "\x00\x00\x00\x07\x1e{\"a\":1}",
		"too long":          "\x7f\xff\xff\xff\x1e",
		"no kind of a vote": "\x00\x00\x00\x1c\x1e{\"message\":{\"kind\":\"elect\"}}",
	} {
		t.Run(name, func(t *testing.T) {
			k := New("b", identity, rendezvous.Join{}, first)
			raw, _, end := served(t, k)
			_, err := raw.Write([]byte(frame))
			require.NoError(t, err)
			end()
			require.Equal(t, first, k.Newest())
		})
	}
}

// A process without a register says so.
func TestServeWithoutARegister(t *testing.T) {
	_, c, end := served(t, nil)
	m, err := c.Receive()
	require.NoError(t, err)
	require.Equal(t, rendezvous.Refuse{Reason: "this process keeps no register"}, m)
	end()
}

// A proposer that is silent for long does not hold a connection.
func TestServeEndsAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, c, end := served(t, New("b", identity, rendezvous.Join{}, first))
		require.NoError(t, c.Send(rendezvous.Vote{Message: prepare(1)}))
		reply(t, c)
		end()
		require.Equal(t, idleTime, time.Since(begin))
	})
}
