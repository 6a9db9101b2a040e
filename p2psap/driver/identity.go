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
	"sync"
	"time"
)

// stretchRounds is the number of rounds of PBKDF2 (RFC 8018) with HMAC-SHA-256 for every secret, as OWASP advises:
// each guess at a secret costs about 0.2 s of a processor.
const stretchRounds = 600_000

// Key is a random key of 256 bits. It cannot be guessed, so unlike a secret it is not stretched.
type Key [32]byte

// NewKey returns a fresh Key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails (crypto/rand)
	return k
}

// Identity authenticates the two ends of a connection to each other. Connections are TLS 1.3 (RFC 8446) with a
// self-signed certificate of the listener. Then each end proves that it knows the run's secret; the proof is bound to
// the connection. The dialling end proves first. See Server and Client.
type Identity struct {
	purpose  string
	listener tls.Certificate // self-signed, of this Identity alone

	derive func(salt []byte) ([]byte, error)

	mu   sync.Mutex                   // guards what follows
	keys map[[sha256.Size]byte][]byte // derived, by salt; at most maxKeys
}

// NewKeyIdentity returns an Identity with a Key that both ends have. Keys for different purposes are independent.
func NewKeyIdentity(key Key, purpose string) (*Identity, error) {
	return newIdentity(purpose, func([]byte) ([]byte, error) { return key[:], nil })
}

// NewSaltedIdentity returns an Identity whose key for one purpose is stretched from the run's secret, with a random
// salt: the public key of the listener's certificate. A guess tried against one listener is of no use against
// another. The secret is stretched when the first connection needs it, which takes about 0.2 s: once by a listener,
// once for each listener by a dialling end.
func NewSaltedIdentity(secret []byte, purpose string) (*Identity, error) {
	if len(secret) == 0 {
		return nil, errors.New("driver: an identity needs a secret")
	}
	text := string(secret)
	return newIdentity(purpose, func(salt []byte) ([]byte, error) {
		return pbkdf2.Key(sha256.New, text, append([]byte("p2pdc secret "), salt...), stretchRounds, sha256.Size)
	})
}

func newIdentity(purpose string, derive func(salt []byte) ([]byte, error)) (*Identity, error) {
	c, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("driver: identity: %w", err)
	}
	return &Identity{purpose: purpose, listener: c, derive: derive}, nil
}

func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<37, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, nil
}

// proofKey returns the key of one end's proof, on a connection to the listener of a certificate.
func (i *Identity) proofKey(role string, listener *x509.Certificate) ([]byte, error) {
	key, err := i.keyFor(listener)
	if err == nil {
		key, err = hkdf.Key(sha256.New, key, nil, "p2pdc proof "+role+" "+i.purpose, sha256.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("driver: identity: %w", err)
	}
	return key, nil
}

// maxKeys bounds the keys that an Identity remembers, of its own listener and those of other processes.
const maxKeys = 16

// keyFor returns the key for a listener. It derives one for every salt once.
func (i *Identity) keyFor(listener *x509.Certificate) (key []byte, err error) {
	salt := sha256.Sum256(listener.RawSubjectPublicKeyInfo)
	i.mu.Lock()
	defer i.mu.Unlock()
	if key = i.keys[salt]; key != nil {
		return key, nil
	}
	if key, err = i.derive(salt[:]); err != nil {
		return nil, err
	}
	if i.keys == nil || len(i.keys) >= maxKeys {
		i.keys = map[[sha256.Size]byte][]byte{}
	}
	i.keys[salt] = key
	return key, nil
}
