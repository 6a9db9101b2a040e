package exchange_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// average is one unknown of x = 1 + y/2, where y is the unknown of the other peer.
type average struct{ other iterate.Rank }

func (a average) Values() int                     { return 1 }
func (a average) Start([]float64)                 {}
func (a average) Relax(next, _, ghosts []float64) { next[0] = 1 + ghosts[0]/2 }

func (a average) Neighbours() []iterate.Neighbour {
	return []iterate.Neighbour{{Rank: a.other, Send: []int{0}, Receive: []int{0}}}
}

// message is a message that has arrived.
type message struct {
	tag   p2psap.Tag
	label p2psap.Label
	data  []byte
}

// session is one end of a session in memory. It accepts every message at once.
type session struct {
	arrived []message
	other   *session
}

func (s *session) Reserve(p2psap.Tag, int) []byte { return nil }

func (s *session) Send(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	s.other.arrived = append(s.other.arrived, message{tag, label, slices.Clone(data)})
	return 1, nil
}

func (s *session) Receive(slot *p2psap.Slot, _ bool) (p2psap.Arrival, error) {
	i := slices.IndexFunc(s.arrived, func(m message) bool { return m.tag == slot.Tag })
	if i < 0 {
		return p2psap.Arrival{}, nil
	}
	m := s.arrived[i]
	s.arrived = slices.Delete(s.arrived, i, i+1)
	return p2psap.Arrival{Label: uint64(m.label), Length: copy(slot.Data, m.data), Fresh: true, Complete: true}, nil
}

func (s *session) View(tag p2psap.Tag, v *p2psap.View, waits bool) (p2psap.Arrival, error) {
	slot := p2psap.Slot{Tag: tag, Data: v.Memory(8)}
	a, err := s.Receive(&slot, waits)
	if a.Fresh {
		v.Show()
	}
	return a, err
}

func (s *session) Accepted(p2psap.Transfer) (bool, error) { return true, nil }
func (s *session) Adapt(microproto.Mode) error            { return nil }
func (s *session) Adapted() (bool, error)                 { return true, nil }

// connect returns both ends of a session.
func connect() (a, b *session) {
	a, b = &session{}, &session{}
	a.other, b.other = b, a
	return a, b
}

// Two peers of a synchronous iteration run in virtual time, one after the other. The loop is the shell: it relaxes,
// passes arrivals to the exchange, and ends when both peers have finished.
func Example() {
	peers := make([]iterate.Peer, 2)
	run := make([]*exchange.Exchange, 2)
	for r := range peers {
		var err error
		peers[r], err = iterate.NewPeer(iterate.Config{
			Rank: iterate.Rank(r), Peers: 2, Scheme: iterate.Synchronous(), Tolerance: 1e-9,
		}, average{other: iterate.Rank(1 - r)})
		if err != nil {
			fmt.Println(err)
			return
		}
		run[r] = exchange.New(exchange.Config{
			Rank: iterate.Rank(r), Peer: peers[r], Name: func(q iterate.Rank) string { return fmt.Sprint("peer", q) },
		})
	}
	a, b := run[0].Neighbours()[0], run[1].Neighbours()[0]
	fmt.Println("sessions:", a.HaloOptions().Name, a.AgreeOptions().Name)
	haloA, haloB := connect()
	agreeA, agreeB := connect()
	a.Halo, a.Agree, b.Halo, b.Agree = haloA, agreeA, haloB, agreeB
	done := make([]bool, 2)
	for now := time.Duration(0); !done[0] || !done[1]; now += time.Microsecond {
		for r, x := range run {
			x.TouchAll()
			if _, err := x.Poll(now); err != nil {
				fmt.Println(err)
				return
			}
			action, err := x.Next(now)
			if err != nil {
				fmt.Println(err)
				return
			}
			switch action.Kind {
			case exchange.Relax:
				peers[r].Relax(*action.Op)
			case exchange.Done:
				done[r] = true
			}
		}
	}
	for r, p := range peers {
		x := make([]float64, 1)
		p.Solution(x)
		fmt.Printf("peer %d: %s, x = %.3f\n", r, p.Outcome().Reason, x[0])
	}
	// Output:
	// sessions: halo/0-1 agree/0-1
	// peer 0: converged, x = 2.000
	// peer 1: converged, x = 2.000
}
