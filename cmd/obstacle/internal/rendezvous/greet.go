package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Identity is what the two ends compare before they work together.
type Identity struct {
	Program     string // version of the program, for messages
	Fingerprint string // of the protocols that peers speak to each other
	Secret      []byte // of the run
	keys        *driver.Identity
}

// NewIdentity derives the keys of a run's rendezvous from its secret.
func NewIdentity(program, fingerprint string, secret []byte) (Identity, error) {
	keys, err := driver.NewIdentity(secret, "rendezvous")
	return Identity{Program: program, Fingerprint: fingerprint, Secret: secret, keys: keys}, err
}

// Control is the identity of the control channels between the peers of a run.
func (id *Identity) Control(run string) (*driver.Identity, error) {
	return driver.NewIdentity(id.Secret, "control "+run)
}

// GreetingTime bounds each step of the greeting.
const GreetingTime = 10 * time.Second

// Admit is the launcher's half of the greeting up to Join. The caller answers
// with Conn.Welcome or Conn.Refuse. An error means that the other end was
// refused or was no peer at all.
func (c *Conn) Admit(id Identity) (Join, error) {
	if err := c.secure(id.keys.Server(c.net)); err != nil {
		if errors.Is(err, io.EOF) || !driver.Refused(err) {
			return Join{}, fmt.Errorf("%s sent no greeting: %w", c.Remote(), driver.Explain(err))
		}
		return Join{}, fmt.Errorf("refused the peer at %s: it does not know the run's secret (--secret-file): %w", c.Remote(), err)
	}
	ch := Challenge{Version: Version, Program: id.Program, Fingerprint: id.Fingerprint}
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

// Join is the peer's half of the greeting. wait bounds the time until the launcher
// answers. j needs Seat, Host and Pid.
func (c *Conn) Join(id Identity, j Join, wait time.Duration) (Welcome, error) {
	if err := c.secure(id.keys.Client(c.net)); err != nil {
		if driver.Refused(err) {
			return Welcome{}, fmt.Errorf("the rendezvous at %s does not know the run's secret (--secret-file), or another one: %w", c.Remote(), err)
		}
		return Welcome{}, fmt.Errorf("%s is no rendezvous of this program: %w", c.Remote(), driver.Explain(err))
	}
	m, err := c.ReceiveWithin(GreetingTime, KindChallenge)
	if err != nil {
		return Welcome{}, fmt.Errorf("%s is no rendezvous of this program: %w", c.Remote(), err)
	}
	ch := m.(Challenge)
	j.Version, j.Program, j.Fingerprint = Version, id.Program, id.Fingerprint
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
