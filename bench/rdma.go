package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

const (
	rdmaBytes  = 64 << 10 // a face of 90² points
	rdmaTrips  = 300      // round trips of a measurement
	rdmaWarmUp = 30
)

// rdmaMode is a mode in which the InfiniBand link carries a message.
type rdmaMode struct {
	name       string
	mode       microproto.Mode
	config     ib.Config
	registered bool // messages lie in memory of the link
	base       int  // index of the mode that it is compared with; its own: none
}

func rdmaModes() []rdmaMode {
	segments, messages := ib.Config{Peers: 1}, ib.Config{Peers: 1, MessageBytes: rdmaBytes}
	slots, both := segments, messages
	slots.WindowSlots, both.WindowSlots = 64, 8
	const sync, async = microproto.ModeSynchronous, microproto.ModeAsynchronous
	return []rdmaMode{
		{"segments of 8128 bytes", sync, segments, false, 0},
		{"segments, from registered memory", sync, segments, true, 1},
		{"one request a message", sync, messages, false, 0},
		{"one request a message, from registered memory", sync, messages, true, 2},
		{"segments of 8128 bytes", async, segments, false, 4},
		{"one request a message", async, messages, false, 4},
		{"one-sided, segments", async, slots, false, 4},
		{"one-sided, one request a message", async, both, false, 5},
	}
}

// rdma sends messages to and fro between two nodes of this process, over the InfiniBand link on
// software adapters. It compares the work of the link and the transport in each mode; it does not
// apply to hardware.
func rdma(ctx context.Context, r *measure.Run) error {
	modes := rdmaModes()
	took, requests := make([][]float64, len(modes)), make([]float64, len(modes))
	for range r.Repeat(r.Rounds) {
		for i, m := range modes {
			d, n, err := m.round(ctx)
			if err != nil {
				return fmt.Errorf("%v, %s: %w", m.mode, m.name, err)
			}
			took[i], requests[i] = append(took[i], d.Seconds()*1e6/(2*rdmaTrips)), float64(n)/(2*rdmaTrips)
		}
	}
	for i, m := range modes {
		name := fmt.Sprintf("%v, 64 KB one way: %s, %.1f work requests a message", m.mode, m.name, requests[i])
		line := measure.Over(name, "µs", took[i])
		if m.base != i {
			line = line.Against(modes[m.base].name, took[m.base])
		}
		r.Add(line)
	}
	return nil
}

// round returns the time and the number of work requests of rdmaTrips round trips.
func (m *rdmaMode) round(ctx context.Context) (d time.Duration, requests uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fabric := ib.NewSoftwareFabric()
	var rails []driver.Rail
	var links []*ib.Link
	for i := range 2 {
		c := m.config
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
	nodes, err := connectedNodes(ctx, rails...)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return 0, 0, err
	}
	sockets, err := both(func(i int) (*driver.Socket, error) {
		slots := []p2psap.SlotSpec{{Tag: 1, Length: rdmaBytes}}
		return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{Name: "rdma", Mode: m.mode, Slots: slots})
	})
	if err != nil {
		return 0, 0, err
	}
	if n := sockets[0].Info().Conditions.Network; n != p2psap.InfiniBand {
		return 0, 0, fmt.Errorf("the session is on network %v", n)
	}
	sent := func() uint64 { return links[0].Stats().Requests + links[1].Stats().Requests }
	var began time.Time
	_, err = both(func(i int) (struct{}, error) {
		end := rdmaEnd{node: nodes[i], socket: sockets[i], registered: m.registered}
		end.face, end.wait = make([]byte, rdmaBytes), m.mode == microproto.ModeSynchronous
		end.slot = p2psap.Slot{Tag: 1, Data: make([]byte, rdmaBytes)}
		for k := range rdmaWarmUp + rdmaTrips {
			if k == rdmaWarmUp && i == 0 {
				began, requests = time.Now(), sent()
			}
			if err := end.trip(ctx, i == 0, uint64(k+1)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return time.Since(began), sent() - requests, err
}

// rdmaEnd is one end of the measurement.
type rdmaEnd struct {
	node   *driver.Node
	socket *driver.Socket
	face   []byte
	slot   p2psap.Slot
	wait   bool // until a message has been accepted

	registered bool // messages lie in memory of the link
}

// trip does this end's part of a round trip: it sends and then receives, or receives and then sends.
func (e *rdmaEnd) trip(ctx context.Context, first bool, label uint64) error {
	if first {
		if err := e.send(ctx, label); err != nil {
			return err
		}
	}
	for {
		a, err := e.socket.Receive(ctx, &e.slot)
		if err != nil {
			return err
		}
		if a.Complete && a.Label == label {
			break
		}
		if err := e.node.WaitAny(ctx, driver.NoTimeout); err != nil {
			return err
		}
	}
	if first {
		return nil
	}
	return e.send(ctx, label)
}

func (e *rdmaEnd) send(ctx context.Context, label uint64) error {
	face := e.face
	if e.registered {
		if face = e.socket.Reserve(1, len(face)); face == nil {
			return errors.New("the link has no registered memory")
		}
	}
	t, err := e.socket.Send(ctx, 1, p2psap.Label(label), face)
	if err == nil && e.wait {
		_, err = e.socket.Wait(ctx, t)
	}
	return err
}
