// Package calibration describes the machine that it runs on, by measurement: how fast it relaxes,
// alone and on all cores, and what messages cost.
package calibration

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// looks is how long a waiting peer polls before it blocks, if each thread has a core: solver/runner
// for 50 µs, p2psap/driver for 20 µs more.
const looks = 70 * time.Microsecond

// ThisMachine describes the machine that the program runs on: its peers are processes that share its
// cores and exchange messages over loopback. It takes one or two seconds on all cores.
func ThisMachine(ctx context.Context, b Workload) (*cluster.Description, error) {
	b, err := b.orDefault()
	if err != nil {
		return nil, fmt.Errorf("this-machine: %w", err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the measured work uses the cores
	cores := max(1, runtime.GOMAXPROCS(0)-b.Path.threads())
	peers, err := newPeers(b)
	if err != nil {
		return nil, fmt.Errorf("this-machine: %w", err)
	}
	s, err := relaxations(b, peers, cores)
	if err != nil {
		return nil, fmt.Errorf("this-machine: relaxation: %w", err)
	}
	m, err := messages(ctx, b, peers, cores)
	if err != nil {
		return nil, fmt.Errorf("this-machine: messages over loopback: %w", err)
	}
	m.send.Byte += s.packing
	m.receive.Byte += s.reading
	return &cluster.Description{
		Name:  "this-machine",
		About: fmt.Sprintf("Peers that are processes of this machine (%s, %d cores), over loopback.", runtime.GOARCH, cores),
		Sources: []string{
			fmt.Sprintf("relaxation, part, jitter: measured, %v, the %d peers of a core in turns on one core, %d rounds of "+
				"%v; medians, quartiles", b, perCore(b, cores), rounds, pass),
			fmt.Sprintf("crowding, straggle: measured, the same on %d cores at once; sweeps beyond four deviations",
				min(cores, b.Peers)),
			fmt.Sprintf("send, receive: measured over loopback, messages of %d to %d bytes by an MTU of %d, %v each, with "+
				"the peers of a core relaxing in between; residuals of the fit up to %.0f %%; faces packed and read",
				m.shortest, m.longest, b.MTU, exchangeTime, 100*m.worst),
			fmt.Sprintf("wake: measured, mean of %d threads that had waited for %v", wakes, asleep),
			"rate, latency: what loopback takes is in the costs of sending and receiving",
		},
		Classes: []cluster.Class{{
			Name: "process", Cores: cores, Relaxation: s.rate, Part: s.part + m.poll, Crowding: s.crowding, Jitter: s.jitter,
			Straggle: s.straggle,
			Send:     m.send, Receive: m.receive, Wake: m.wake,
		}},
		Networks: []cluster.Network{{
			Name: "loopback", Kind: cluster.Ether, Rate: 1e11, Latency: 500 * time.Nanosecond, Queue: 8 << 20, MTU: b.MTU,
		}},
		Sites: []cluster.Site{{Name: "here", Network: "loopback", Machines: []cluster.Group{{Class: "process",
			OneMachine: true}}}},
	}, nil
}

// traffic is the cost of messages.
type traffic struct {
	send, receive cluster.Cost
	wake          cluster.Wake
	poll          time.Duration
	worst         float64 // relative residual of an exchange
	shortest      int     // bytes of the shortest message that was timed
	longest       int
}

// flooded measures messages on a full path, which asynchronous peers meet.
func (t *traffic) flooded(w *wire, tag int, other func() error) error {
	f, err := w.flood(tag, other)
	if err != nil {
		return err
	}
	n := w.lengths[tag]
	segments := (n + w.ends[0].Info().SegmentSize - 1) / w.ends[0].Info().SegmentSize
	t.send.Message = max(0, t.send.Message+f.send-t.send.Of(segments, n))
	t.receive.Segment += f.carry
	return nil
}

// perCore returns the number of peers of a core.
func perCore(b Workload, cores int) int { return (b.Peers + cores - 1) / cores }

// messages measures the cost of messages. Between any two, the peers of the core relax.
func messages(ctx context.Context, b Workload, peers []*relaxer, cores int) (t traffic, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	face := 0
	for _, l := range peers[0].peer.Links() {
		for _, n := range l.Sent {
			face = max(face, n)
		}
	}
	w, err := open(ctx, &b, lengthsAround(face))
	defer w.close()
	if err != nil {
		return t, err
	}
	if b.Peers > cores { // as peers do if there are more of them than cores
		for _, n := range w.nodes {
			n.DisableBusyPoll()
		}
	}
	busy := turns{peers: peers[:min(len(peers), perCore(b, cores))]}
	t.shortest, t.longest = w.lengths[0], w.lengths[len(w.lengths)-1]
	all, err := w.exchanges(busy.once)
	if err != nil {
		return t, err
	}
	if t.send, t.receive, err = fitCosts(all); err != nil {
		return t, err
	}
	if b.Asynchronous && b.Path != nil {
		if err := t.flooded(w, slices.Index(w.lengths, face), busy.once); err != nil {
			return t, err
		}
	}
	for _, e := range all {
		sum, was := t.send.Of(e.Segments, e.Bytes)+t.receive.Of(e.Segments, e.Bytes), e.Send+e.Receive
		t.worst = max(t.worst, max(float64(sum-was), float64(was-sum))/float64(max(1, was)))
	}
	if t.poll, err = w.idlePoll(busy.once); err != nil {
		return t, err
	}
	if b.Peers <= cores {
		t.wake.After = looks
	}
	t.wake.Takes, err = w.waking(t.receive.Of(1, w.lengths[0]) + b.Path.lag())
	return t, err
}
