package simulate_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// averager is a peer of an iteration that has nothing to do with obstacle problems: each peer of
// a ring holds a number, and replaces it by the mean of its own and its neighbours'.
type averager struct {
	rank, peers iterate.Rank
	value       float64
	sweep       iterate.Iteration // made so far
	sent        int               // neighbours that have this sweep's value
	inbox       map[iterate.Rank]map[uint64]float64
}

const sweeps = 100

func newAverager(rank iterate.Rank) (p simulate.Peer, points int, err error) {
	a := &averager{rank: rank, peers: 8, value: float64(rank), inbox: map[iterate.Rank]map[uint64]float64{}}
	for _, q := range a.neighbours() {
		a.inbox[q] = map[uint64]float64{}
	}
	return a, 1, nil
}

func (a *averager) neighbours() []iterate.Rank {
	return []iterate.Rank{(a.rank + 1) % a.peers, (a.rank + a.peers - 1) % a.peers}
}

// Links: one value travels each way. Values of two sweeps may be under way at once, so they have
// two slots.
func (a *averager) Links() (links []iterate.Link) {
	for _, q := range a.neighbours() {
		links = append(links, iterate.Link{Rank: q, Slots: []int{8, 8}, Sent: []int{8, 8}})
	}
	return links
}

func (a *averager) Next(time.Duration) iterate.Op {
	label := uint64(a.sweep)
	switch n := a.neighbours(); {
	case a.sweep == sweeps:
		return iterate.Op{Kind: iterate.OpDone}
	case a.sent < len(n):
		a.sent++
		return iterate.Op{Kind: iterate.OpSend, To: n[a.sent-1], Tag: uint32(label % 2), Label: label + 1, Bytes: 8}
	}
	for _, values := range a.inbox {
		if _, ok := values[label+1]; !ok {
			return iterate.Op{Kind: iterate.OpWait}
		}
	}
	return iterate.Op{Kind: iterate.OpRelax, Points: 1}
}

func (a *averager) Pack(_ iterate.Op, dst []byte) {
	binary.LittleEndian.PutUint64(dst, math.Float64bits(a.value))
}

func (a *averager) Halo(_ time.Duration, q iterate.Rank, _ uint32, label uint64, data ...[]byte) error {
	a.inbox[q][label] = math.Float64frombits(binary.LittleEndian.Uint64(data[0]))
	return nil
}

func (a *averager) Agree(time.Duration, iterate.Rank, []byte) error { return nil }

func (a *averager) Relax(iterate.Op) {
	sum := a.value
	for _, values := range a.inbox {
		sum += values[uint64(a.sweep)+1]
	}
	a.value = sum / 3
	a.sweep++
	a.sent = 0
}

func (a *averager) Outcome() iterate.Outcome {
	return iterate.Outcome{Reason: iterate.ReachedSweeps, Sweeps: a.sweep, Residual: math.Abs(a.value - 3.5)}
}

func (a *averager) Progress() iterate.Progress {
	return iterate.Progress{Sweep: a.sweep, Residual: math.NaN()}
}

// Peers of any iteration run on a simulated cluster: here eight of them average their numbers.
func ExampleConfig_own() {
	r, err := simulate.Run(context.Background(), simulate.Config{Model: twoSites(8), New: newAverager, Peers: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f sweeps in %v, %d messages, distance from the mean below 1e-6: %v\n",
		r.Sweeps(), r.Virtual.Round(10*time.Millisecond), r.Messages(), r.Residual < 1e-6)
	// Output:
	// 100 sweeps in 2.03s, 1600 messages, distance from the mean below 1e-6: true
}
