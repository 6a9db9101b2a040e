package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

const (
	rdmaBytes = 64 << 10 // a face of 90² points
	rdmaTurns = 300      // of a round
)

// way is one way of the InfiniBand link to carry a message.
type way struct {
	name       string
	mode       microproto.Mode
	config     ib.Config
	registered bool // what is sent lies in memory of the link
}

func rdmaWays() []way {
	segments, messages := ib.Config{Peers: 1}, ib.Config{Peers: 1, MessageBytes: rdmaBytes}
	slots, both := segments, messages
	slots.WindowSlots, both.WindowSlots = 64, 8
	const sync, async = microproto.ModeSynchronous, microproto.ModeAsynchronous
	return []way{
		{"segments of 8128 bytes", sync, segments, false},
		{"segments, from registered memory", sync, segments, true},
		{"one request a message", sync, messages, false},
		{"one request a message, from registered memory", sync, messages, true},
		{"segments of 8128 bytes", async, segments, false},
		{"one request a message", async, messages, false},
		{"one-sided, segments", async, slots, false},
		{"one-sided, one request a message", async, both, false},
	}
}

// rdma sends messages there and back between two nodes of this process, over the
// InfiniBand link on adapters of software. It compares what the link and the transport
// do for each way; of an adapter of hardware it says nothing.
func rdma(ctx context.Context, b *bench) error {
	ways := rdmaWays()
	took, requests := make([][]float64, len(ways)), make([]float64, len(ways))
	for range b.rounds {
		for i, w := range ways {
			d, r, err := w.round(ctx)
			if err != nil {
				return fmt.Errorf("%v, %s: %w", w.mode, w.name, err)
			}
			took[i], requests[i] = append(took[i], d.Seconds()*1e6/(2*rdmaTurns)), float64(r)/(2*rdmaTurns)
		}
	}
	for i, w := range ways {
		b.report.add(over("rdma", fmt.Sprintf("%v, 64 KB one way: %s", w.mode, w.name), "µs", took[i]).
			because(fmt.Sprintf("%.1f work requests a message, credit and grants among them; adapters of software, no claim about others", requests[i])))
	}
	for _, r := range [][2]int{{2, 0}, {3, 2}, {5, 4}, {6, 4}, {7, 5}} {
		b.report.add(over("rdma", fmt.Sprintf("%v: %s / %s", ways[r[0]].mode, ways[r[0]].name, ways[r[1]].name), "ratio of times", ratios(took[r[0]], took[r[1]])))
	}
	return nil
}

// round measures rdmaTurns messages there and back: how long they take, and how many
// work requests.
func (w *way) round(ctx context.Context) (d time.Duration, requests uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fabric := ib.NewSoftwareFabric()
	var rails []driver.Rail
	var links []*ib.Link
	for i := range 2 {
		c := w.config
		c.Name, c.Device, c.Fabric = fmt.Sprint(i), fmt.Sprintf("soft%d", i), fabric
		if err := fabric.Add(c.Device); err != nil {
			return 0, 0, err
		}
		l, err := ib.Open(c)
		if err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		rails, links = append(rails, driver.Rail{Network: p2psap.InfiniBand, Link: l}), append(links, l)
	}
	faces, err := both(func(i int) ([]byte, error) {
		if w.registered {
			return links[i].Allocate(rdmaBytes)
		}
		return make([]byte, rdmaBytes), nil
	})
	if err != nil {
		return 0, 0, err
	}
	nodes, err := pair(ctx, rails...)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return 0, 0, err
	}
	sockets, err := both(func(i int) (*driver.Socket, error) {
		return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{Name: "rdma", Mode: w.mode, Slots: []p2psap.SlotSpec{{Tag: 1, Length: rdmaBytes}}})
	})
	if err != nil {
		return 0, 0, err
	}
	if n := sockets[0].Info().Conditions.Network; n != p2psap.InfiniBand {
		return 0, 0, fmt.Errorf("the session is on network %v", n)
	}
	const warm = 30
	var began time.Time
	_, err = both(func(end int) (struct{}, error) {
		return struct{}{}, w.play(ctx, nodes[end], sockets[end], faces[end], end == 0, warm+rdmaTurns, func(turn int) {
			if turn == warm && end == 0 {
				began, requests = time.Now(), links[0].Stats().Requests+links[1].Stats().Requests
			}
		})
	})
	return time.Since(began), links[0].Stats().Requests + links[1].Stats().Requests - requests, err
}

// play sends and receives in turn, or receives and sends.
func (w *way) play(ctx context.Context, n *driver.Node, s *driver.Socket, face []byte, first bool, turns int, at func(turn int)) error {
	slot := p2psap.Slot{Tag: 1, Data: make([]byte, rdmaBytes)}
	send := func(k int) error {
		t, err := s.Send(ctx, 1, p2psap.Label(k), face)
		if err == nil && w.mode == microproto.ModeSynchronous {
			_, err = s.Wait(ctx, t)
		}
		return err
	}
	for k := range turns {
		at(k)
		if first {
			if err := send(k + 1); err != nil {
				return err
			}
		}
		for {
			a, err := s.Receive(ctx, &slot)
			if err != nil {
				return err
			}
			if a.Complete && a.Label == uint64(k+1) {
				break
			}
			if err := n.WaitAny(ctx, driver.NoTimeout); err != nil {
				return err
			}
		}
		if !first {
			if err := send(k + 1); err != nil {
				return err
			}
		}
	}
	return nil
}
