package driver

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// A secret shorter than strongSecret bytes may have been chosen by a person, and is
// stretched, so that whoever has seen a public key made of it has work with every
// guess (PBKDF2, RFC 8018, with the rounds that OWASP advises for SHA-256).
const (
	strongSecret  = 22 // of base 64: 128 bits
	stretchRounds = 600_000
)

// ErrStranger: the other end of a connection does not know the run's secret.
var ErrStranger = errors.New("driver: the other end does not know the run's secret")

// Identity is what the two ends of a connection know each other by: everybody who
// knows a run's secret derives the same two key pairs from it, one for the end that
// listens and one for the end that dials. Connections are TLS 1.3 (RFC 8446); each end
// takes the other's key and no other one, no authority vouches for anybody, and no
// session is resumed.
type Identity struct {
	server, client *tls.Config
}

// NewIdentity derives keys from the run's secret for one purpose; keys for different
// purposes have nothing to do with each other. For a short secret it takes a moment.
func NewIdentity(secret []byte, purpose string) (*Identity, error) {
	if len(secret) == 0 {
		return nil, errors.New("driver: an identity needs a secret")
	}
	var err error
	if len(secret) < strongSecret {
		if secret, err = pbkdf2.Key(sha256.New, string(secret), []byte("p2pdc run secret"), stretchRounds, sha256.Size); err != nil {
			return nil, fmt.Errorf("driver: identity: %w", err)
		}
	}
	listener, err := certificate(secret, purpose, "listener")
	if err != nil {
		return nil, err
	}
	dialler, err := certificate(secret, purpose, "dialler")
	if err != nil {
		return nil, err
	}
	own := func(mine, theirs tls.Certificate) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{mine}, SessionTicketsDisabled: true,
			ClientAuth: tls.RequireAnyClientCert,
			// Not left out: VerifyConnection compares with the one key that there is.
			InsecureSkipVerify: true,
			VerifyConnection:   func(s tls.ConnectionState) error { return verify(&s, theirs) },
		}
	}
	return &Identity{server: own(listener, dialler), client: own(dialler, listener)}, nil
}

// certificate is a self-signed one for a key derived from the secret.
func certificate(secret []byte, purpose, role string) (tls.Certificate, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "p2pdc identity "+role+" "+purpose, ed25519.SeedSize)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("driver: identity: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<37, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("driver: identity: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("driver: identity: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// verify wants the other end to have the run's key. That it holds the private half
// TLS itself makes sure of.
func verify(s *tls.ConnectionState, theirs tls.Certificate) error {
	if len(s.PeerCertificates) == 1 {
		if key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok && key.Equal(theirs.Leaf.PublicKey) {
			return nil
		}
	}
	return ErrStranger
}

// Server and Client wrap the connection of the end that has accepted it, and of the
// end that has dialled. Nothing is sent before the handshake.
func (i *Identity) Server(c net.Conn) *tls.Conn { return tls.Server(c, i.server) }

// Client is Server for the end that has dialled.
func (i *Identity) Client(c net.Conn) *tls.Conn { return tls.Client(c, i.client) }

// Refused tells whether a handshake has failed because one of the two ends does not
// take the other for one of its run.
func Refused(err error) bool {
	var alert tls.AlertError
	return errors.Is(err, ErrStranger) || errors.As(err, &alert) || isRemoteAlert(err)
}

// Explain says in words of the run why a handshake, or the first read after it, has
// failed: TLS itself speaks of certificates.
func Explain(err error) error {
	var header tls.RecordHeaderError
	switch {
	case err == nil || errors.Is(err, ErrStranger):
		return err
	case errors.As(err, &header):
		return fmt.Errorf("the other end does not speak TLS, so it is no program of this kind, or an older one: %w", err)
	case Refused(err):
		return fmt.Errorf("the other end does not take this one for a peer of its run (a different secret, most likely): %w", err)
	}
	return err
}

// isRemoteAlert tells whether the other end has ended the handshake with an alert.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
