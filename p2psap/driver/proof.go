package driver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ProofVersion is the version of the exchange of proofs. Both ends must have the same.
const ProofVersion = 1

// ErrUnauthenticated is returned when the other end of a connection does not know the run's secret.
var ErrUnauthenticated = errors.New("driver: the other end does not know the run's secret, or has another one")

// VersionError is returned when the other end has another version of the exchange of proofs.
type VersionError struct{ Local, Remote int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("driver: different versions: this end proves with protocol %d, the other end with %d; "+
		"run the same program everywhere", e.Local, e.Remote)
}

// The proofs are HMACs of keying material of the TLS connection (RFC 8446 §7.5, RFC 9266), with a key for each role:
// a proof is not valid on another connection, nor when it is sent back.
const (
	proofMagic    = "P2K"
	proofLabel    = "EXPORTER-p2pdc-proof"
	roleListener  = "listener"
	roleDialler   = "dialler"
	proofAccepted = 1
	proofRefused  = 2
)

// proof is a message of the exchange: magic (3 bytes), version (1), state (1), HMAC (32).
type proof struct {
	version uint8
	state   uint8 // proofAccepted; from the listener also proofRefused, with an HMAC of zeros
	sum     [sha256.Size]byte
}

const proofBytes = len(proofMagic) + 2 + sha256.Size

func (p *proof) append(b []byte) []byte {
	b = append(append(b, proofMagic...), p.version, p.state)
	return append(b, p.sum[:]...)
}

// parseProof parses a proof. Of a proof of another version it returns the version alone.
func parseProof(b []byte) (proof, error) {
	if len(b) != proofBytes || string(b[:len(proofMagic)]) != proofMagic {
		return proof{}, errors.New("driver: the other end is no program of this kind: it sent no proof")
	}
	p := proof{version: b[len(proofMagic)], state: b[len(proofMagic)+1]}
	if p.version != ProofVersion {
		return proof{version: p.version}, nil
	}
	copy(p.sum[:], b[len(proofMagic)+2:])
	if p.state != proofAccepted && (p.state != proofRefused || p.sum != [sha256.Size]byte{}) {
		return proof{}, fmt.Errorf("driver: a proof of state %d", p.state)
	}
	return p, nil
}

// check returns why the other end's proof is not the one expected; nil if it is.
func (p *proof) check(want proof) error {
	switch {
	case p.version != ProofVersion:
		return &VersionError{ProofVersion, int(p.version)}
	case p.state != proofAccepted || !hmac.Equal(p.sum[:], want.sum[:]):
		return ErrUnauthenticated
	}
	return nil
}

// Server authenticates an accepted connection: TLS, the dialling end's proof, then this end's. An unauthenticated
// peer receives a certificate with a random key, and a refusal. Server returns within the time of ctx. The caller
// closes c after an error.
func (i *Identity) Server(ctx context.Context, c net.Conn) (*tls.Conn, error) {
	t := tls.Server(c, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.listener}, SessionTicketsDisabled: true,
	})
	return t, within(ctx, t, func() error {
		theirs, err := readProof(t)
		if err != nil {
			return err
		}
		want, err := i.proof(t, roleDialler, i.listener.Leaf)
		if err != nil {
			return err
		}
		answer := proof{version: ProofVersion, state: proofRefused}
		if err = theirs.check(want); err == nil {
			if answer, err = i.proof(t, roleListener, i.listener.Leaf); err != nil {
				return err
			}
		}
		_, failed := t.Write(answer.append(nil))
		return errors.Join(err, failed)
	})
}

// Client authenticates a connection that this end dialled; see Server. A listener that does not know the secret
// receives a proof, against which it can only try guesses, each of which it has to stretch.
func (i *Identity) Client(ctx context.Context, c net.Conn) (*tls.Conn, error) {
	t := tls.Client(c, &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The proof authenticates the listener; its certificate is self-signed.
		InsecureSkipVerify: true,
	})
	return t, within(ctx, t, func() error {
		listener := t.ConnectionState().PeerCertificates[0]
		mine, err := i.proof(t, roleDialler, listener)
		if err != nil {
			return err
		}
		if _, err := t.Write(mine.append(nil)); err != nil {
			return err
		}
		theirs, err := readProof(t)
		if err != nil {
			return err
		}
		want, err := i.proof(t, roleListener, listener)
		if err != nil {
			return err
		}
		return theirs.check(want)
	})
}

// within runs the TLS handshake and then the exchange of proofs, both within the time of ctx. It leaves the connection open,
// whose state may say why the time was too short.
func within(ctx context.Context, t *tls.Conn, exchange func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = t.SetDeadline(time.Unix(1, 0)) })
	err := t.HandshakeContext(context.WithoutCancel(ctx))
	if err == nil {
		err = exchange()
	}
	if late := !stop(); late && err == nil {
		return context.Cause(ctx)
	} else if late {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if why := unacknowledged(t.NetConn()); err != nil && why != "" {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

func (i *Identity) proof(t *tls.Conn, role string, listener *x509.Certificate) (proof, error) {
	key, err := i.proofKey(role, listener)
	if err != nil {
		return proof{}, err
	}
	s := t.ConnectionState()
	material, err := s.ExportKeyingMaterial(proofLabel, nil, sha256.Size)
	if err != nil {
		return proof{}, fmt.Errorf("driver: identity: %w", err)
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(material)
	p := proof{version: ProofVersion, state: proofAccepted}
	copy(p.sum[:], h.Sum(nil))
	return p, nil
}

func readProof(r io.Reader) (proof, error) {
	var b [proofBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return proof{}, err
	}
	return parseProof(b[:])
}

// Explain returns an error of Server or Client with a cause that a user can act on: the errors of TLS name only
// certificates and alerts.
func Explain(err error) error {
	var header tls.RecordHeaderError
	var version *VersionError
	switch {
	case errors.Is(err, ErrUnauthenticated) || errors.As(err, &version):
	case errors.As(err, &header):
		return fmt.Errorf("the other end does not speak TLS, so it is no program of this kind, or an older one: %w", err)
	case isAlert(err):
		return fmt.Errorf("the other end ended the handshake: it is another program, or an older version of this one; "+
			"run the same program everywhere: %w", err)
	}
	return err
}

// isAlert reports whether an alert of either end has ended the connection.
func isAlert(err error) bool {
	var alert tls.AlertError
	var op *net.OpError
	return errors.As(err, &alert) || errors.As(err, &op) && op.Op == "remote error"
}
