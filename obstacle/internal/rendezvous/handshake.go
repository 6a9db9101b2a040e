package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Identity holds what both ends must have in common.
type Identity struct {
	Program     string // version of the program, for messages
	Fingerprint string // of the protocols between the peers
	keys        *driver.Identity
}

// purpose makes the keys of the rendezvous differ from those of control channels.
const purpose = "rendezvous"

// NewIdentity returns the identity of a run whose secret comes from a file. The key is derived from it on first use,
// once per process; see driver.NewSaltedIdentity.
func NewIdentity(program, fingerprint string, secret []byte) (Identity, error) {
	keys, err := driver.NewSaltedIdentity(secret, purpose)
	return Identity{Program: program, Fingerprint: fingerprint, keys: keys}, err
}

// NewKeyIdentity returns the identity of a run whose key the launcher generated and gave to the peers that it started.
func NewKeyIdentity(program, fingerprint string, key driver.Key) (Identity, error) {
	keys, err := driver.NewKeyIdentity(key, purpose)
	return Identity{Program: program, Fingerprint: fingerprint, keys: keys}, err
}

// Listener returns what WithListener needs. It is secret.
func (id Identity) Listener() []byte { return id.keys.Listener() }

// WithListener returns the identity for a further server of the run; see driver.Identity.WithListener.
func (id Identity) WithListener(key []byte) (Identity, error) {
	var err error
	id.keys, err = id.keys.WithListener(key)
	return id, err
}

// Control returns the identity of the control channels between the peers of a run. Its key is random and does not
// depend on the secret.
func (w *Welcome) Control() (*driver.Identity, error) {
	if len(w.Key) != len(driver.Key{}) {
		return nil, fmt.Errorf("%w: Welcome has a key of %d bytes", ErrMalformed, len(w.Key))
	}
	return driver.NewKeyIdentity(driver.Key(w.Key), "control "+w.Run)
}

// HandshakeTime bounds each step of the handshake.
const HandshakeTime = 10 * time.Second

// Admit runs the launcher's half of the handshake up to Join. The caller answers with Welcome or Refuse. On an error
// the other end was refused or is not a peer.
func (c *Conn) Admit(id Identity) (Join, error) {
	if err := c.secure(id.keys.Server); err != nil {
		if errors.Is(err, driver.ErrUnauthenticated) {
			return Join{}, fmt.Errorf("refused the peer at %s: it does not know the run's secret (--secret-file)",
				c.Remote())
		}
		return Join{}, fmt.Errorf("%s did not complete the handshake: %w", c.Remote(), driver.Explain(err))
	}
	ch := Challenge{Version: Version, Program: id.Program, Fingerprint: id.Fingerprint}
	if err := c.Send(ch); err != nil {
		return Join{}, err
	}
	m, err := c.ReceiveWithin(HandshakeTime, KindJoin)
	if err != nil {
		return Join{}, fmt.Errorf("%s did not complete the handshake: %w", c.Remote(), err)
	}
	j := m.(Join)
	if why := mismatch("the launcher", ch, "the peer", j); why != "" {
		return j, c.Refuse(why)
	}
	return j, nil
}

// Refuse sends the reason to the other end and returns it as an error.
func (c *Conn) Refuse(why string) error {
	refused := fmt.Errorf("refused the peer at %s: %s", c.Remote(), why)
	if err := c.Send(Refuse{Reason: why}); err != nil {
		return errors.Join(refused, err)
	}
	return refused
}

// ErrNoAnswer is wrapped by errors of Join if the connection ended or timed out before the launcher answered: another
// attempt may succeed.
var ErrNoAnswer = errors.New("no answer")

// unanswered returns the error of a step of the handshake that failed with err.
func (c *Conn) unanswered(err error) error {
	for _, e := range []error{
		io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ECONNRESET,
		syscall.EPIPE,
	} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w from the rendezvous at %s: %w", ErrNoAnswer, c.Remote(), err)
		}
	}
	return fmt.Errorf("%s is not a rendezvous of this program: %w", c.Remote(), driver.Explain(err))
}

// unknownSecret is the error of Introduce if the other end has another secret.
type unknownSecret struct{ remote string }

func (e *unknownSecret) Error() string {
	return fmt.Sprintf("the rendezvous at %s does not know the run's secret (--secret-file)", e.remote)
}

func (e *unknownSecret) Unwrap() error { return driver.ErrUnauthenticated }

// Introduce runs the other half of the handshake, up to sending j, which needs Rank, Host and Pid.
func (c *Conn) Introduce(id Identity, j Join) error {
	return c.introduce(id, func() Join { return j })
}

// introduce is Introduce with a message that is made when the launcher has proved that it knows the secret.
func (c *Conn) introduce(id Identity, join func() Join) error {
	if err := c.secure(id.keys.Client); err != nil {
		if errors.Is(err, driver.ErrUnauthenticated) {
			return &unknownSecret{c.Remote()}
		}
		return c.unanswered(err)
	}
	m, err := c.ReceiveWithin(HandshakeTime, KindChallenge)
	if err != nil {
		return c.unanswered(err)
	}
	ch, j := m.(Challenge), join()
	j.Version, j.Program, j.Fingerprint = Version, id.Program, id.Fingerprint
	j.PidSpace = driver.PidSpace()
	if err := c.Send(j); err != nil {
		return c.unanswered(err)
	}
	if why := mismatch("the launcher", ch, "this peer", j); why != "" {
		return errors.New(why)
	}
	return nil
}

// Join runs the peer's half of the handshake. wait bounds the time until the launcher answers. j needs Rank, Host and
// Pid.
func (c *Conn) Join(id Identity, j Join, wait time.Duration) (Welcome, error) {
	if err := c.Introduce(id, j); err != nil {
		return Welcome{}, err
	}
	m, err := c.ReceiveWithin(wait, KindWelcome, KindRefuse, KindSpare, KindBye)
	if err != nil {
		return Welcome{}, c.unanswered(err)
	}
	if _, is := m.(Spare); is && c.OnSpare != nil {
		c.OnSpare()
	}
	for spare, is := m.(Spare); is; spare, is = m.(Spare) {
		c.detectSilence(len(spare.Keepers) > 1)
		if m, err = c.Receive(KindWelcome, KindBye, KindSpare); err != nil {
			return Welcome{Keepers: spare.Keepers}, fmt.Errorf("%w: %w: %s: %w", ErrNoLeader, ErrSpareLeft, c.Remote(), err)
		}
	}
	switch m := m.(type) {
	case Refuse:
		if m.Later {
			return Welcome{}, fmt.Errorf("%w: %s: %s", ErrNoLeader, c.Remote(), m.Reason)
		}
		return Welcome{}, &RefusedError{fmt.Sprintf("the launcher at %s refused this peer: %s", c.Remote(), m.Reason)}
	case Bye:
		if m.Early {
			return Welcome{}, ErrEarly
		}
		return Welcome{}, ErrNotNeeded
	case Welcome:
		c.detectSilence(false)
		if len(m.Reconnect) > 0 && len(m.Addresses) > 0 {
			c.last(m.Reconnect, true)
			go c.keepUp(id, j, m.Addresses)
		}
		return m, nil
	}
	return Welcome{}, ErrMalformed
}

// RefusedError is returned by Join if another attempt would not succeed.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

// ErrNoLeader is wrapped by errors of Join if the process at the other end does not lead the run, at least not yet.
var ErrNoLeader = errors.New("it does not lead the run")

// ErrSpareLeft is wrapped by errors of Join of a spare peer whose connection to the launcher has ended.
var ErrSpareLeft = errors.New("the process that leads the run left before it needed this spare peer")

// ErrNotNeeded is returned by Join of a spare peer when the run has ended without it.
var ErrNotNeeded = errors.New("the run has ended without this spare peer")

// ErrEarly wraps ErrNotNeeded for a run that has ended before its tolerance.
var ErrEarly = fmt.Errorf("%w, before its tolerance", ErrNotNeeded)

// mismatch returns why the two ends cannot work together, "" if they can.
func mismatch(launcher string, ch Challenge, peer string, j Join) string {
	switch {
	case ch.Version != j.Version:
		return fmt.Sprintf("different versions: %s is obstacle %s (rendezvous protocol %d), %s is obstacle %s "+
			"(rendezvous protocol %d); "+
			"run the same program everywhere", launcher, ch.Program, ch.Version, peer, j.Program, j.Version)
	case ch.Fingerprint != j.Fingerprint:
		return fmt.Sprintf("different protocols: %s is obstacle %s (protocols %.12s), %s is obstacle %s "+
			"(protocols %.12s); "+
			"run the same program everywhere", launcher, ch.Program, ch.Fingerprint, peer, j.Program, j.Fingerprint)
	}
	return ""
}
