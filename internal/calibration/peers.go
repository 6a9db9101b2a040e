package calibration

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// sweep is the time of one sweep of a block.
type sweep struct {
	parts    []timedPart
	relaxing time.Duration
	packing  time.Duration // of faces sent
	reading  time.Duration // of faces received
	bytes    int           // of faces, one way
}

// relaxer is one of several peers without a network between them.
type relaxer struct {
	peer  problem.Peer
	begin time.Time
	faces map[slot][2][]byte // the newest and the one before: a slot may be read until the next face comes
	next  []arrival
	done  sweep
}

type slot struct {
	rank iterate.Rank
	tag  uint32
}

type arrival struct {
	from  slot
	label uint64
	data  []byte
}

// testProblem returns a problem like the reference problem. Its obstacle differs from point to point, so
// that it is read from memory.
func testProblem(n [3]int) *problem.Problem {
	return &problem.Problem{
		Name: "calibration", Dimension: 3, N: n, Hi: problem.Point{1, 1, 1}, Diffusion: problem.Coefficient{Value: 1},
		Obstacle: func(p problem.Point) float64 {
			v := 0.5
			for _, x := range p {
				v -= 4 * (x - 0.5) * (x - 0.5)
			}
			return v
		},
		Boundary: func(problem.Point) float64 { return 0 },
		Source:   problem.Coefficient{Value: -1},
	}
}

// newPeers returns the peers of a run that has begun to relax. Of more than three blocks along an
// axis it makes three, since all inner blocks are alike.
func newPeers(b Workload) ([]*relaxer, error) {
	whole, err := b.partition()
	if err != nil {
		return nil, err
	}
	parts, n := whole.Parts(), [3]int{b.N, b.N, b.N}
	for a := range parts {
		if parts[a] > 3 {
			n[a], parts[a] = whole.Cuts[a][3], 3
		}
	}
	partition, err := problem.GridOf(n, parts)
	if err != nil {
		return nil, err
	}
	var all []*relaxer
	for rank := range partition.Peers() {
		peer, err := solver.New(problem.Config{
			Problem: testProblem(n), Partition: partition, Rank: iterate.Rank(rank), Scheme: iterate.Synchronous(),
			Tolerance:  1e-12,
			CheckEvery: 1 << 30,
			Method:     problem.MethodConfig{SweepsPerPass: 1}, // as for a peer among others
		})
		if err != nil {
			return nil, err
		}
		all = append(all, &relaxer{peer: peer, begin: time.Now(), faces: map[slot][2][]byte{}})
	}
	return all, begin(all)
}

// opening is the number of sweeps that the peers make together, until they have agreed on the start.
const opening = 3

func begin(all []*relaxer) error {
	left := make([]int, len(all))
	for i, r := range all {
		left[i] = opening * r.peer.Box().Points()
	}
	for going, idle := len(all), 0; going > 0; {
		if idle++; idle > 1000*len(all) {
			return errors.New("the peers to be measured wait for each other")
		}
		for rank, r := range all {
			for left[rank] > 0 {
				op := r.peer.Next(time.Since(r.begin))
				if op.Kind == iterate.OpWait {
					break
				}
				idle = 0
				if err := r.begins(op, iterate.Rank(rank), all); err != nil {
					return err
				}
				if op.Kind == iterate.OpRelax {
					if left[rank] -= op.Points; left[rank] <= 0 {
						going--
					}
				}
			}
		}
	}
	return nil
}

// begins carries out an operation among all peers.
func (r *relaxer) begins(op iterate.Op, rank iterate.Rank, all []*relaxer) error {
	switch op.Kind {
	case iterate.OpRelax:
		r.peer.Relax(op)
	case iterate.OpSend:
		data := make([]byte, op.Bytes)
		r.peer.Pack(op, data)
		to := all[op.To]
		return to.peer.Halo(time.Since(to.begin), rank, op.Tag, op.Label, data)
	case iterate.OpAgree:
		to := all[op.To]
		return to.peer.Agree(time.Since(to.begin), rank, op.Message)
	default:
		return fmt.Errorf("a peer to be measured wants operation %d: %w", op.Kind, op.Err)
	}
	return nil
}

// relax relaxes the whole block once. It returns the peer's own faces to it in place of its
// neighbours', which takes as long; the values do not matter.
func (r *relaxer) relax() (sweep, error) {
	r.done = sweep{parts: r.done.parts[:0]}
	for left := r.peer.Box().Points(); left > 0; {
		if err := r.receive(); err != nil {
			return r.done, err
		}
		op := r.peer.Next(time.Since(r.begin))
		switch op.Kind {
		case iterate.OpRelax:
			before := time.Now()
			r.peer.Relax(op)
			took := time.Since(before)
			r.done.parts = append(r.done.parts, timedPart{op.Points, took})
			r.done.relaxing += took
			left -= op.Points
		case iterate.OpSend:
			r.send(op)
		default:
			return r.done, fmt.Errorf("the peer to be measured wants operation %d: %w", op.Kind, op.Err)
		}
	}
	return r.done, nil
}

func (r *relaxer) send(op iterate.Op) {
	from := slot{op.To, op.Tag}
	f := r.faces[from]
	f[0], f[1] = f[1], f[0]
	if len(f[0]) != op.Bytes {
		f[0] = make([]byte, op.Bytes)
	}
	r.faces[from] = f
	before := time.Now()
	r.peer.Pack(op, f[0])
	r.done.packing += time.Since(before)
	r.done.bytes += op.Bytes
	r.next = append(r.next, arrival{from, op.Label, f[0]})
}

func (r *relaxer) receive() error {
	for _, a := range r.next {
		before := time.Now()
		if err := r.peer.Halo(time.Since(r.begin), a.from.rank, a.from.tag, a.label, a.data); err != nil {
			return err
		}
		r.done.reading += time.Since(before)
	}
	r.next = r.next[:0]
	return nil
}
