package driver

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ends runs both parts of a handshake over a pipe, in the time of synctest.
func ends(server, client func(context.Context, net.Conn) (*tls.Conn, error)) (serverErr, clientErr error) {
	a, b := net.Pipe()
	var both sync.WaitGroup
	part := func(f func(context.Context, net.Conn) (*tls.Conn, error), c net.Conn, err *error) func() {
		return func() {
			_, *err = f(context.Background(), c)
			if *err != nil {
				_ = c.Close()
			}
		}
	}
	both.Go(part(server, a, &serverErr))
	both.Go(part(client, b, &clientErr))
	both.Wait()
	_ = a.Close()
	_ = b.Close()
	return serverErr, clientErr
}

func TestProofs(t *testing.T) {
	us, other := identity(t, theKey), identity(t, otherKey)
	purpose, err := NewKeyIdentity(theKey, "another purpose")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		s, c := ends(us.Server, us.Client)
		require.NoError(t, s)
		require.NoError(t, c)
		for name, i := range map[string]*Identity{"key": other, "purpose": purpose} {
			s, c = ends(us.Server, i.Client)
			require.ErrorIs(t, s, ErrUnauthenticated, name)
			require.ErrorIs(t, c, ErrUnauthenticated, name)
		}
	})
}

// A proof of one connection is not valid on another: a relay between two ends of the run with TLS connections
// of its own is refused by both.
func TestRelayedProof(t *testing.T) {
	us := identity(t, theKey)
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	relay, err := certificate(private)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		far, nearFar := net.Pipe()
		var wg sync.WaitGroup
		var serverErr error
		wg.Go(func() {
			_, serverErr = us.Server(t.Context(), far)
			_ = far.Close()
		})
		_, clientErr := ends(func(_ context.Context, c net.Conn) (*tls.Conn, error) {
			in := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{relay}})
			out := tls.Client(nearFar, &tls.Config{InsecureSkipVerify: true})
			if err := in.Handshake(); err != nil {
				return nil, err
			}
			if err := out.Handshake(); err != nil {
				return nil, err
			}
			b := make([]byte, proofBytes)
			if _, err := io.ReadFull(in, b); err != nil {
				return nil, err
			}
			if _, err := out.Write(b); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(out, b); err != nil {
				return nil, err
			}
			_, err := in.Write(b)
			return in, err
		}, us.Client)
		_ = nearFar.Close()
		wg.Wait()
		require.ErrorIs(t, serverErr, ErrUnauthenticated)
		require.ErrorIs(t, clientErr, ErrUnauthenticated)
	})
}

// The listener sends nothing that depends on the secret before the dialling end has proved that it knows it,
// and only a refusal otherwise.
func TestListenerRevealsNothing(t *testing.T) {
	us := identity(t, theKey)
	synctest.Test(t, func(t *testing.T) {
		var seen []byte
		serverErr, _ := ends(us.Server, func(_ context.Context, c net.Conn) (*tls.Conn, error) {
			conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			if err := conn.Handshake(); err != nil {
				return nil, err
			}
			guess := proof{version: ProofVersion, state: proofAccepted}
			if _, err := conn.Write(guess.append(nil)); err != nil {
				return nil, err
			}
			seen, _ = io.ReadAll(conn)
			return conn, nil
		})
		require.ErrorIs(t, serverErr, ErrUnauthenticated)
		refusal := proof{version: ProofVersion, state: proofRefused}
		require.Equal(t, refusal.append(nil), seen)
	})
	other := identity(t, theKey)
	require.NotEqual(t, us.listener.Leaf.PublicKey, other.listener.Leaf.PublicKey, "one certificate for one key")
}

func TestOtherProofVersion(t *testing.T) {
	us := identity(t, theKey)
	odd := func(c *tls.Conn) error {
		p := proof{version: 9, state: proofAccepted}
		_, err := c.Write(p.append(nil))
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		s, _ := ends(us.Server, func(_ context.Context, c net.Conn) (*tls.Conn, error) {
			conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			if err := odd(conn); err != nil {
				return nil, err
			}
			_, err := readProof(conn)
			return conn, err
		})
		require.ErrorContains(t, s, "this end proves with protocol 1, the other end with 9")
		_, c := ends(func(_ context.Context, c net.Conn) (*tls.Conn, error) {
			conn := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{us.listener}})
			if _, err := readProof(conn); err != nil {
				return nil, err
			}
			return conn, odd(conn)
		}, us.Client)
		require.ErrorContains(t, Explain(c), "this end proves with protocol 1, the other end with 9")
	})
}

// An end of a version with certificates of the secret's own keys is distinguished from an unauthenticated
// peer.
func TestVersionWithCertificates(t *testing.T) {
	us := identity(t, theKey)
	l, err := net.Listen("tcp", "127.0.0.1:0") // unlike a pipe it keeps an alert until it is read
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		config := &tls.Config{Certificates: []tls.Certificate{us.listener}, ClientAuth: tls.RequireAnyClientCert}
		_ = tls.Server(c, config).Handshake()
		_, _ = io.Copy(io.Discard, c)
	}()
	tcp, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer tcp.Close()
	_, err = us.Client(t.Context(), tcp)
	require.ErrorContains(t, Explain(err), "an older version of this one")
	synctest.Test(t, func(t *testing.T) {
		s, _ := ends(us.Server, func(ctx context.Context, c net.Conn) (*tls.Conn, error) {
			refuse := func(tls.ConnectionState) error { return ErrUnauthenticated }
			conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true, VerifyConnection: refuse})
			return conn, conn.HandshakeContext(ctx)
		})
		require.ErrorContains(t, Explain(s), "an older version of this one")
	})
}

// A handshake ends in time, wherever the other end stops and however slowly it sends.
func TestHandshakeEndsInTime(t *testing.T) {
	us := identity(t, theKey)
	synctest.Test(t, func(t *testing.T) {
		for name, f := range map[string]func(c net.Conn){
			"silent": func(net.Conn) {},
			"byte by byte": func(c net.Conn) {
				for _, b := range append([]byte{22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3}, make([]byte, 200)...) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					<-time.After(100 * time.Millisecond)
				}
			},
			"no proof": func(c net.Conn) {
				_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake()
			},
			"proof byte by byte": func(c net.Conn) {
				conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				p := proof{version: ProofVersion, state: proofAccepted}
				for _, b := range p.append(nil) {
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					<-time.After(time.Second)
				}
			},
		} {
			a, b := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				f(b)
			}()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := us.Server(ctx, a)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, 5*time.Second, time.Since(begin), name)
			_ = a.Close()
			_ = b.Close()
			<-done
		}
	})
}

// Every secret is stretched, however long it is, with a different salt for each listener, once for each
// listener, however many connections there are.
func TestSecretsAreStretched(t *testing.T) {
	secrets := []string{"a secret of a person, much longer than 22 characters", "a short secret"}
	if testing.Short() { // to stretch one takes most of the time
		secrets = secrets[:1]
	}
	for _, secret := range secrets {
		i, err := NewSaltedIdentity([]byte(secret), "run 7")
		require.NoError(t, err)
		key, err := i.proofKey(roleDialler, i.listener.Leaf)
		require.NoError(t, err)
		public := sha256.Sum256(i.listener.Leaf.RawSubjectPublicKeyInfo)
		stretched, err := pbkdf2.Key(sha256.New, secret, append([]byte("p2pdc secret "), public[:]...), 600_000, 32)
		require.NoError(t, err)
		want, err := hkdf.Key(sha256.New, stretched, nil, "p2pdc proof dialler run 7", 32)
		require.NoError(t, err)
		require.True(t, hmac.Equal(want, key), "%q is not stretched", secret)
	}

	var salts [][]byte
	salted := func() *Identity {
		i, err := NewSaltedIdentity([]byte("a secret of a person"), "rendezvous")
		require.NoError(t, err)
		i.keys.derive = func(salt []byte) ([]byte, error) {
			salts = append(salts, slices.Clone(salt))
			return append([]byte("key of "), salt...), nil
		}
		return i
	}
	first, second, peer := salted(), salted(), salted()
	for _, listener := range []*Identity{first, first, first, second, second} {
		synctest.Test(t, func(t *testing.T) {
			s, c := ends(listener.Server, peer.Client)
			require.NoError(t, s)
			require.NoError(t, c)
		})
	}
	require.Len(t, salts, 4, "once at each end for each listener")
	require.Equal(t, salts[0], salts[1])
	require.Equal(t, salts[2], salts[3])
	require.NotEqual(t, salts[0], salts[2], "two runs have one salt")

	// A further process that listens with the certificate of the first one costs a dialling end nothing.
	further, err := salted().WithListener(first.Listener())
	require.NoError(t, err)
	require.Equal(t, first.listener.Leaf.RawSubjectPublicKeyInfo, further.listener.Leaf.RawSubjectPublicKeyInfo)
	synctest.Test(t, func(t *testing.T) {
		s, c := ends(further.Server, peer.Client)
		require.NoError(t, s)
		require.NoError(t, c)
	})
	require.Len(t, salts, 5, "only the process that listens")
	_, err = first.WithListener([]byte{1})
	require.ErrorContains(t, err, "the key of a listener has 1 bytes, not 32")
}

// FuzzProof parses any bytes as a proof or returns an error. A proof of this version has one encoding.
func FuzzProof(f *testing.F) {
	good := proof{version: ProofVersion, state: proofAccepted, sum: [32]byte{1, 2, 3}}
	refused := proof{version: ProofVersion, state: proofRefused}
	f.Add(good.append(nil))
	f.Add(refused.append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseProof(b)
		if err == nil && p.version == ProofVersion {
			require.Equal(t, b, p.append(nil))
		}
	})
}
