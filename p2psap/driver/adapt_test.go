package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// pair opens sessions of CTP* between two nodes over UDP on loopback.
func pair(t *testing.T, names ...string) (a, b *Node, sockets [][2]*Socket) {
	change := func(c *Config) { c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog() }
	a, b = start(t, "a", change), start(t, "b", change)
	join(t, a, b)
	for _, name := range names {
		sa, sb := open(t, a, b, options(name, microproto.ModeSynchronous))
		sockets = append(sockets, [2]*Socket{sa, sb})
	}
	return a, b, sockets
}

// both runs f for the two ends at once.
func both(t *testing.T, s [2]*Socket, f func(s *Socket) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, x := range s {
		wg.Go(func() {
			if err := f(x); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Each step exchanges values asynchronously and then messages, all of which have to arrive, as a solver with
// time steps does.
func TestAdaptAtEveryStep(t *testing.T) {
	_, _, sockets := pair(t, "s")
	steps := uint64(50)
	if testing.Short() {
		steps = 25
	}
	ctx := limit(t)
	both(t, sockets[0], func(s *Socket) error {
		value, message := make([]byte, 512), make([]byte, 512)
		for step := uint64(1); step <= steps; step++ {
			for i := range uint64(4) {
				binary.BigEndian.PutUint64(message, 10*step+i)
				t, err := s.Send(ctx, 2, p2psap.Label(10*step+i), slices.Clone(message[:8]))
				if err != nil {
					return err
				}
				_ = t // nobody waits: Adapt must not lose it
			}
			if err := s.Adapt(ctx, microproto.ModeAsynchronous); err != nil {
				return err
			}
			for i := range uint64(4) { // of before the change, and still there, each once
				a, err := s.Receive(ctx, &p2psap.Slot{Tag: 2, Data: message})
				if err != nil || a.Label != 10*step+i || !a.Fresh || a.Length != 8 {
					return errors.Join(err, errors.New("a message of before the change is missing"))
				}
			}
			slot := p2psap.Slot{Tag: 1, Data: value}
			for a := (p2psap.Arrival{}); !a.Complete || a.Label < step; {
				mine := make([]byte, 512)
				if _, err := s.Send(ctx, 1, p2psap.Label(step), mine); err != nil {
					return err
				}
				var err error
				if a, err = s.Receive(ctx, &slot); err != nil {
					return err
				}
			}
			if err := s.Adapt(ctx, microproto.ModeSynchronous); err != nil {
				return err
			}
		}
		return nil
	})
	for _, s := range sockets[0] {
		i := s.Info()
		require.EqualValues(t, 2*steps, i.Changes)
		require.EqualValues(t, 2*steps, i.Epoch)
		require.Equal(t, microproto.ModeSynchronous, i.Conditions.Mode)
		require.Positive(t, i.LastPause)
	}
}

// One goroutine sends, one receives, one changes the composition.
func TestAdaptWithTraffic(t *testing.T) {
	_, _, sockets := pair(t, "s")
	const messages, changes = 3000, 100
	ctx := limit(t)
	both(t, sockets[0], func(s *Socket) error {
		var wg sync.WaitGroup
		errs := make([]error, 3)
		wg.Go(func() {
			data := make([]byte, 8*messages)
			for i := range messages {
				m := data[8*i : 8*i+8]
				binary.BigEndian.PutUint64(m, uint64(i))
				if tr, err := s.Send(ctx, 2, p2psap.Label(i), m); err != nil || tr != p2psap.Transfer(i+1) {
					errs[0] = errors.Join(err, errors.New("send"))
					return
				}
			}
			for r := (p2psap.Ready{}); !r.Accepted && errs[0] == nil; {
				r, errs[0] = s.Wait(ctx, messages)
			}
		})
		wg.Go(func() {
			slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
			for i := range uint64(messages) {
				if a, err := s.Receive(ctx, &slot); err != nil || a.Label != i || binary.BigEndian.Uint64(slot.Data) != i {
					errs[1] = errors.Join(err, errors.New("messages are lost, doubled or out of order"))
					return
				}
			}
		})
		wg.Go(func() {
			for range changes {
				if errs[2] = s.Adapt(ctx, microproto.ModeSynchronous); errs[2] != nil {
					return
				}
			}
		})
		wg.Wait()
		return errors.Join(errs...)
	})
	require.EqualValues(t, changes, sockets[0][0].Info().Changes)
}

func TestAdaptToDifferentModes(t *testing.T) {
	_, _, sockets := pair(t, "s")
	ctx := limit(t)
	modes := map[*Socket]microproto.Mode{sockets[0][0]: microproto.ModeSynchronous,
		sockets[0][1]: microproto.ModeAsynchronous}
	var mu sync.Mutex
	both(t, sockets[0], func(s *Socket) error {
		mu.Lock()
		m := modes[s]
		mu.Unlock()
		var refused *p2psap.RefusedError
		if err := s.Adapt(ctx, m); !errors.As(err, &refused) {
			return errors.Join(err, errors.New("not refused"))
		}
		return nil
	})
	require.Zero(t, sockets[0][0].Info().Changes)
	both(t, sockets[0], func(s *Socket) error { return s.Adapt(ctx, microproto.ModeAsynchronous) })
	require.EqualValues(t, 1, sockets[0][0].Info().Changes)
}

// An Adapt whose context ended still counts: the next one pairs with the other end's next.
func TestAdaptGivenUp(t *testing.T) {
	_, _, sockets := pair(t, "s")
	a, b := sockets[0][0], sockets[0][1]
	short, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, a.Adapt(short, microproto.ModeAsynchronous), context.Canceled)
	ctx := limit(t)
	done := make(chan error, 1)
	go func() { done <- a.Adapt(ctx, microproto.ModeSynchronous) }()
	require.NoError(t, b.Adapt(ctx, microproto.ModeAsynchronous))
	require.NoError(t, b.Adapt(ctx, microproto.ModeSynchronous))
	require.NoError(t, <-done)
	require.EqualValues(t, 2, a.Info().Changes)
}

// Close at either end, and of the node, ends an Adapt that waits.
func TestAdaptAndClose(t *testing.T) {
	for what, end := range map[string]func(a, b *Node, s [2]*Socket) error{
		"own close":   func(_, _ *Node, s [2]*Socket) error { return s[0].Close() },
		"other close": func(_, _ *Node, s [2]*Socket) error { return s[1].Close() },
		"own node":    func(a, _ *Node, _ [2]*Socket) error { return a.Close() },
		"other node":  func(_, b *Node, _ [2]*Socket) error { return b.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			a, b, sockets := pair(t, "s")
			done := make(chan error, 1)
			ctx := limit(t)
			go func() { done <- sockets[0][0].Adapt(ctx, microproto.ModeAsynchronous) }()
			require.NoError(t, end(a, b, sockets[0]))
			require.ErrorIs(t, <-done, p2psap.ErrClosed)
		})
	}
}

// A thousand sessions between two nodes are used, changed and closed, and leave no state behind.
func TestThousandSessions(t *testing.T) {
	before := runtime.NumGoroutine()
	sessions := 1000
	if testing.Short() {
		sessions = 100
	}
	a, b, _ := pair(t)
	ctx := limit(t)
	errs := make(chan error, 2*sessions)
	use := func(n *Node, peer, name string) error {
		s, err := n.Open(ctx, peer, options(name, microproto.ModeSynchronous))
		if err != nil {
			return err
		}
		data := make([]byte, 8)
		if _, err := s.Send(ctx, 2, 1, data); err != nil {
			return err
		}
		if err := s.Adapt(ctx, microproto.ModeAsynchronous); err != nil {
			return err
		}
		if a, err := s.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)}); err != nil || a.Label != 1 {
			return errors.Join(err, errors.New("the message of before the change"))
		}
		if err := s.Adapt(ctx, microproto.ModeSynchronous); err != nil {
			return err
		}
		return s.Close()
	}
	for i := range sessions {
		name := fmt.Sprint("s", i)
		go func() { errs <- use(a, "b", name) }()
		go func() { errs <- use(b, "a", name) }()
	}
	for range 2 * sessions {
		require.NoError(t, <-errs)
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	goroutinesEnd(t, before)
}
