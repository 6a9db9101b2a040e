package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/p2pdc/p2pdc/p2psap"
)

// Tags of the sessions.
const (
	halo  p2psap.Tag = iota + 1 // the value next to the cut
	check                       // of the agreement session: the same, while no peer relaxes
	worst                       // of the agreement session: a residual
)

// block is one peer's share of −u″ = f on (0, 1), u(0) = u(1) = 0: the points
// u[1..len−2]; u[0] and u[len−1] are the neighbours' next points, or the boundary.
type block struct {
	u, f, next []float64
	h          float64
	sides      []*side
}

// side is a neighbour: where its value lies, and what to send it.
type side struct {
	ghost, edge int // indices into u
	lower       bool
	halo        p2psap.Socket // synchronous or asynchronous
	agreement   p2psap.Socket // always synchronous
	out         [2][8]byte    // sent values belong to the session until they are accepted
	in          p2psap.Slot
}

// relaxFor does a number of Jacobi sweeps. The same lines are both schemes: over
// synchronous sessions Receive waits for the neighbour's value of this very sweep,
// over asynchronous ones it takes what is there.
func (b *block) relaxFor(ctx context.Context, first, sweeps int) error {
	for k := first; k < first+sweeps; k++ {
		for i := 1; i < len(b.u)-1; i++ {
			b.next[i] = (b.u[i-1] + b.u[i+1] + b.h*b.h*b.f[i]) / 2
		}
		copy(b.u[1:len(b.u)-1], b.next[1:])
		for _, s := range b.sides {
			if err := b.exchange(ctx, s, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchange sends the value at the cut as sweep k's, and takes the neighbour's.
func (b *block) exchange(ctx context.Context, s *side, k int) error {
	buf := s.out[k%2][:]
	binary.LittleEndian.PutUint64(buf, math.Float64bits(b.u[s.edge]))
	transfer, err := s.halo.Send(ctx, halo, p2psap.Label(k), buf)
	if err != nil {
		return err
	}
	// Of two buffers the other one is needed next: its transfer must be over.
	for done := transfer == 1; !done; {
		ready, err := s.halo.Wait(ctx, transfer-1)
		if err != nil {
			return err
		}
		done = ready.Accepted
	}
	arrival, err := s.halo.Receive(ctx, &s.in)
	if err != nil {
		return err
	}
	if arrival.Fresh {
		b.u[s.ghost] = math.Float64frombits(binary.LittleEndian.Uint64(s.in.Data))
	}
	return nil
}

// residual returns the residual of the vector that all peers hold: no peer relaxes
// while they exchange the values at the cuts. The maximum is sent from the last peer
// to the first and back. Local convergence flags would not suffice.
func (b *block) residual(ctx context.Context, round int) (float64, error) {
	for _, s := range b.sides {
		if err := send(ctx, s.agreement, check, round, b.u[s.edge]); err != nil {
			return 0, err
		}
	}
	for _, s := range b.sides {
		v, err := receive(ctx, s.agreement, check)
		if err != nil {
			return 0, err
		}
		b.u[s.ghost] = v
	}
	r := 0.0
	for i := 1; i < len(b.u)-1; i++ {
		r = max(r, math.Abs((2*b.u[i]-b.u[i-1]-b.u[i+1])/(b.h*b.h)-b.f[i]))
	}
	var lower, upper p2psap.Socket
	for _, s := range b.sides {
		if s.lower {
			lower = s.agreement
		} else {
			upper = s.agreement
		}
	}
	if upper != nil {
		v, err := receive(ctx, upper, worst)
		if err != nil {
			return 0, err
		}
		r = max(r, v)
	}
	if lower != nil {
		if err := send(ctx, lower, worst, round, r); err != nil {
			return 0, err
		}
		v, err := receive(ctx, lower, worst)
		if err != nil {
			return 0, err
		}
		r = v
	}
	if upper != nil {
		return r, send(ctx, upper, worst, round, r)
	}
	return r, nil
}

// send sends a number and waits until it is accepted.
func send(ctx context.Context, s p2psap.Socket, tag p2psap.Tag, label int, v float64) error {
	buf := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	t, err := s.Send(ctx, tag, p2psap.Label(label), buf)
	for accepted := false; err == nil && !accepted; {
		var ready p2psap.Ready
		ready, err = s.Wait(ctx, t)
		accepted = ready.Accepted
	}
	return err
}

// receive receives a number.
func receive(ctx context.Context, s p2psap.Socket, tag p2psap.Tag) (float64, error) {
	slot := p2psap.Slot{Tag: tag, Data: make([]byte, 8)}
	_, err := s.Receive(ctx, &slot)
	return math.Float64frombits(binary.LittleEndian.Uint64(slot.Data)), err
}
