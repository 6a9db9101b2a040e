package rendezvous

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// Identity is what the two ends compare before they work together.
type Identity struct {
	Program     string // version of the program, for messages
	Fingerprint string // of the protocols that peers speak to each other
	Secret      []byte // of the run
}

// GreetingTime bounds each step of the greeting.
const GreetingTime = 10 * time.Second

const nonceBytes = 32

func nonce() []byte {
	n := make([]byte, nonceBytes)
	rand.Read(n) // never fails (crypto/rand)
	return n
}

// proof shows knowledge of the secret for one nonce; role keeps the two
// directions apart.
func proof(secret []byte, role string, nonce []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("p2pdc rendezvous " + role + "\x00"))
	h.Write(nonce)
	return h.Sum(nil)
}

// Admit is the launcher's half of the greeting up to Join. The caller answers
// with Conn.Welcome or Conn.Refuse. An error means that the other end was
// refused or was no peer at all.
func (c *Conn) Admit(id Identity) (Join, error) {
	ch := Challenge{Version: Version, Program: id.Program, Fingerprint: id.Fingerprint, Nonce: nonce()}
	if err := c.Send(ch); err != nil {
		return Join{}, err
	}
	m, err := c.ReceiveWithin(GreetingTime, KindJoin)
	if err != nil {
		return Join{}, fmt.Errorf("%s sent no greeting: %w", c.Remote(), err)
	}
	j := m.(Join)
	if why := mismatch("the launcher", ch, "the peer", j); why != "" {
		return j, c.Refuse(why)
	}
	if !hmac.Equal(j.Proof, proof(id.Secret, "join", ch.Nonce)) {
		return j, c.Refuse("the peer does not know the run's secret (--secret-file)")
	}
	if len(j.Nonce) != nonceBytes {
		return j, c.Refuse("the peer's nonce has a wrong length")
	}
	return j, nil
}

// Refuse tells the other end why, and returns that as an error.
func (c *Conn) Refuse(why string) error {
	refused := fmt.Errorf("refused the peer at %s: %s", c.Remote(), why)
	if err := c.Send(Refuse{Reason: why}); err != nil {
		return errors.Join(refused, err)
	}
	return refused
}

// Welcome sends w to the peer that sent j, with the proof that this is the
// launcher of its run.
func (c *Conn) Welcome(id Identity, j Join, w Welcome) error {
	w.Proof = proof(id.Secret, "welcome", j.Nonce)
	return c.Send(w)
}

// Join is the peer's half of the greeting. wait bounds the time until the launcher
// answers. j needs Seat, Host and Pid.
func (c *Conn) Join(id Identity, j Join, wait time.Duration) (Welcome, error) {
	m, err := c.ReceiveWithin(GreetingTime, KindChallenge)
	if err != nil {
		return Welcome{}, fmt.Errorf("%s is no rendezvous of this program: %w", c.Remote(), err)
	}
	ch := m.(Challenge)
	j.Version, j.Program, j.Fingerprint = Version, id.Program, id.Fingerprint
	j.Proof, j.Nonce = proof(id.Secret, "join", ch.Nonce), nonce()
	if err := c.Send(j); err != nil {
		return Welcome{}, err
	}
	if why := mismatch("the launcher", ch, "this peer", j); why != "" {
		return Welcome{}, errors.New(why)
	}
	m, err = c.ReceiveWithin(wait, KindWelcome, KindRefuse)
	if err != nil {
		return Welcome{}, fmt.Errorf("no answer from the rendezvous at %s: %w", c.Remote(), err)
	}
	switch m := m.(type) {
	case Refuse:
		return Welcome{}, fmt.Errorf("the launcher at %s refused this peer: %s", c.Remote(), m.Reason)
	case Welcome:
		if !hmac.Equal(m.Proof, proof(id.Secret, "welcome", j.Nonce)) {
			return Welcome{}, fmt.Errorf("the rendezvous at %s does not know the run's secret (--secret-file)", c.Remote())
		}
		return m, nil
	}
	return Welcome{}, ErrMalformed
}

// mismatch compares what the two ends speak; empty: the same.
func mismatch(launcher string, ch Challenge, peer string, j Join) string {
	switch {
	case ch.Version != j.Version:
		return fmt.Sprintf("different versions: %s is obstacle %s (rendezvous protocol %d), %s is obstacle %s (rendezvous protocol %d); run the same program everywhere",
			launcher, ch.Program, ch.Version, peer, j.Program, j.Version)
	case ch.Fingerprint != j.Fingerprint:
		return fmt.Sprintf("different protocols: %s is obstacle %s (protocols %.12s), %s is obstacle %s (protocols %.12s); run the same program everywhere",
			launcher, ch.Program, ch.Fingerprint, peer, j.Program, j.Fingerprint)
	}
	return ""
}
