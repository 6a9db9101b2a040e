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
	listener tls.Certificate // self-signed, of this Identity and those made by WithListener
	keys     *keys
}

// keys derives keys and remembers them.
type keys struct {
	derive func(salt []byte) ([]byte, error)

	mu      sync.Mutex
	derived map[[sha256.Size]byte][]byte // by salt; at most maxKeys
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
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("driver: identity: %w", err)
	}
	c, err := certificate(private)
	if err != nil {
		return nil, fmt.Errorf("driver: identity: %w", err)
	}
	return &Identity{purpose: purpose, listener: c, keys: &keys{derive: derive}}, nil
}

// Listener returns what WithListener needs. It is secret.
func (i *Identity) Listener() []byte { return i.listener.PrivateKey.(ed25519.PrivateKey).Seed() }

// WithListener returns an Identity that listens with the certificate of another one. Processes that have connected to
// that one need not stretch their secret again for this one.
func (i *Identity) WithListener(seed []byte) (*Identity, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("driver: identity: the key of a listener has %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	c, err := certificate(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return nil, fmt.Errorf("driver: identity: %w", err)
	}
	return &Identity{purpose: i.purpose, listener: c, keys: i.keys}, nil
}

func certificate(private ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<37, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
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
	key, err := i.keys.of(listener)
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

// of returns the key for a listener. It derives one for every salt once.
func (k *keys) of(listener *x509.Certificate) (key []byte, err error) {
	salt := sha256.Sum256(listener.RawSubjectPublicKeyInfo)
	k.mu.Lock()
	defer k.mu.Unlock()
	if key = k.derived[salt]; key != nil {
		return key, nil
	}
	if key, err = k.derive(salt[:]); err != nil {
		return nil, err
	}
	if k.derived == nil || len(k.derived) >= maxKeys {
		k.derived = map[[sha256.Size]byte][]byte{}
	}
	k.derived[salt] = key
	return key, nil
}
