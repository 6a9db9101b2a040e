package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// How a rail with Rail.Compare is compared with the base rail: messages of the length of a face pass to and fro over
// both in turn, the end with the higher name first, until there are enough of them or the time is over.
const (
	compareBytes = 128 << 10 // the face of a block of 128³ points
	// compareTurn is the number of round trips over one rail before those over the other. The first is not timed: a call
	// that waits receives by itself only from the rail by which frames came last.
	compareTurn  = 5
	compareTurns = 5 // over each rail, and one that is not timed
	// comparePart is the part of the time that a message may take, the shortest of the first turn. If it takes longer, at
	// 2 Gbit/s, it is on the wire for most of it, and no rail makes that shorter by a tenth.
	comparePart = 100
	// compareTime bounds the measurement. With opening and closing the sessions the comparison takes twice as long at most,
	// for which Connect waits.
	compareTime = 50 * time.Millisecond
)

const (
	comparisonTag   = p2psap.Tag(1)
	comparisonEnd   = p2psap.Label(math.MaxUint64) // of the last message, which holds the result
	comparisonBytes = 17                           // of the result: faster or not, both times in nanoseconds
)

// startComparison compares the rail to a peer that waits for it, if there is one. The lock is held.
func (n *Node) startComparison(peer string) {
	network := n.core.ToCompare(peer)
	if network == 0 || n.closing || n.comparing[peer] {
		return
	}
	n.comparing[peer] = true
	n.running.Add(1)
	go n.compare(peer, network)
}

// compare compares a rail to a peer with the base rail. Without a result the base rail remains in use.
func (n *Node) compare(peer string, network p2psap.Network) {
	defer n.running.Done()
	ctx, cancel := context.WithTimeout(n.dialling, 2*n.compareTime)
	defer cancel()
	c, err := n.compareOver(ctx, peer, network)
	if err != nil && c.Base == 0 {
		c = p2psap.Comparison{Failed: true}
	}
	n.log.Info(c.Describe(n.core.BaseNetwork(), network),
		cause(err), "peer", peer, "network", network.String(), "faster", c.Faster)
	n.mu.Lock()
	defer n.unlock()
	delete(n.comparing, peer)
	n.core.Compared(n.now(), peer, network, c)
	n.progress.signalAll()
}

func (n *Node) compareOver(ctx context.Context, peer string, network p2psap.Network) (c p2psap.Comparison, err error) {
	x := comparer{ctx: ctx, now: n.compareNow, to: make([]byte, compareBytes), from: make([]byte, compareBytes)}
	for i, on := range [2]p2psap.Network{n.core.BaseNetwork(), network} {
		s, err := n.open(ctx, peer, p2psap.OpenOptions{
			Name: fmt.Sprintf("%scompare %v/%v", p2psap.ReservedName, network, on), Mode: microproto.ModeSynchronous,
			Slots: []p2psap.SlotSpec{{Tag: comparisonTag, Length: compareBytes}}, Network: on,
		})
		if err != nil {
			return c, err
		}
		defer func() { err = errors.Join(err, s.Shutdown(ctx)) }()
		x.sockets[i] = s
		if got := s.Info().Conditions.Network; got != on {
			return c, fmt.Errorf("driver: the session over %v has come to use %v", on, got)
		}
	}
	if n.config.Name > peer {
		return x.lead(n.compareTime)
	}
	return x.follow()
}

// comparer is one end of a comparison.
type comparer struct {
	ctx      context.Context
	now      func() time.Time
	sockets  [2]*Socket // over the base rail, over the other
	to, from []byte
}

// lead measures, and sends the result to the other end.
func (x *comparer) lead(bound time.Duration) (c p2psap.Comparison, err error) {
	var times [2][]time.Duration
	label, shortest := p2psap.Label(0), time.Duration(math.MaxInt64)
	for began := x.now(); label < 2*compareTurn*(compareTurns+1) && x.now().Sub(began) < bound; {
		if label == compareTurn && shortest > bound/comparePart {
			break
		}
		at := x.now()
		i := x.rail(label)
		if _, err = x.sockets[i].Send(x.ctx, comparisonTag, label, x.to); err != nil {
			return c, err
		}
		if _, err = x.sockets[i].Receive(x.ctx, &p2psap.Slot{Tag: comparisonTag, Data: x.from}); err != nil {
			return c, err
		}
		took := x.now().Sub(at) / 2
		shortest = min(shortest, took)
		if label%compareTurn > 0 && label > 2*compareTurn {
			times[i] = append(times[i], took)
		}
		label++
	}
	c = p2psap.Compare(compareBytes, times[0], times[1])
	_, err = x.sockets[x.rail(label)].Send(x.ctx, comparisonTag, comparisonEnd, encodeComparison(&c))
	return c, err
}

// follow returns the messages until the result comes.
func (x *comparer) follow() (c p2psap.Comparison, err error) {
	for label := p2psap.Label(0); ; label++ {
		s := x.sockets[x.rail(label)]
		a, err := s.Receive(x.ctx, &p2psap.Slot{Tag: comparisonTag, Data: x.from})
		if err != nil {
			return c, err
		}
		if p2psap.Label(a.Label) == comparisonEnd {
			return decodeComparison(x.from[:a.Length])
		}
		if _, err = s.Send(x.ctx, comparisonTag, label, x.to); err != nil {
			return c, err
		}
	}
}

// rail returns over which rail a round trip goes.
func (x *comparer) rail(trip p2psap.Label) int { return int(trip / compareTurn % 2) }

func encodeComparison(c *p2psap.Comparison) []byte {
	b := make([]byte, 1, comparisonBytes)
	if c.Faster {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint64(b, uint64(c.Base))
	return binary.BigEndian.AppendUint64(b, uint64(c.Rail))
}

func decodeComparison(b []byte) (c p2psap.Comparison, err error) {
	if len(b) != comparisonBytes {
		return c, fmt.Errorf("driver: a comparison of networks has %d bytes, the peer has sent %d", comparisonBytes, len(b))
	}
	at := func(i int) time.Duration { return time.Duration(binary.BigEndian.Uint64(b[i:]) & math.MaxInt64) }
	return p2psap.Comparison{Bytes: compareBytes, Faster: b[0] == 1, Base: at(1), Rail: at(9)}, nil
}
