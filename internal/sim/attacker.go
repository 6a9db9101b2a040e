package sim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// attacker reads all frames of all links and injects frames of its own. It does not know the run's
// secret.
type attacker struct {
	c      *Cluster
	rand   *rand.Rand
	seen   [attackerMemory][]byte
	number int // of frames stored so far
	forged uint64
}

// attackerMemory is the number of frames that it stores for replay.
const attackerMemory = 256

func newAttacker(c *Cluster) *attacker {
	return &attacker{c: c, rand: rand.New(rand.NewPCG(c.Scenario.Seed, 0x61747461636b))}
}

// watch observes a frame or a train in transit.
func (a *attacker) watch(from, to iterate.Rank, f microproto.Frame) {
	f.Retain().Pieces(func(p microproto.Frame) {
		if a.rand.Float64() < a.c.Scenario.Attack {
			a.seen[a.number%attackerMemory] = bytes.Clone(p.Data)
			a.number++
			a.strike(from, to)
		}
		p.Release()
	})
}

// strike injects a frame to one of the two ends soon.
func (a *attacker) strike(from, to iterate.Rank) {
	frame := bytes.Clone(a.seen[a.rand.IntN(min(a.number, attackerMemory))])
	if a.rand.IntN(2) == 0 {
		from, to = to, from
	}
	body := frame[min(p2psap.HeaderBytes, len(frame)):]
	switch a.rand.IntN(7) {
	case 0: // replay, or reflection to the sender
	case 1:
		if len(body) > 0 {
			body[a.rand.IntN(len(body))] ^= 1 << a.rand.IntN(8)
		}
	case 2: // other bytes after the same header
		for i := range body {
			body[i] = byte(a.rand.Uint32())
		}
	case 3: // another sequence number
		if len(body) >= 8 {
			binary.BigEndian.PutUint64(body, a.rand.Uint64N(1<<20))
		}
	case 4: // unprotected, in another epoch
		frame[0] = p2psap.WireVersion
		frame[1] += uint8(a.rand.IntN(2))
	case 5: // truncated
		frame = frame[:a.rand.IntN(len(frame))]
	case 6: // in a session of the other end
		if halos := a.c.peers[to].halos(); len(halos) > 0 && len(frame) >= p2psap.HeaderBytes {
			id := halos[a.rand.IntN(len(halos))]
			binary.BigEndian.PutUint32(frame[4:], uint32(id))
		}
	}
	a.forged++
	a.c.clock.After(time.Duration(a.rand.Int64N(int64(5*time.Millisecond))), func() {
		a.c.arrive(to, from, microproto.NewBuffer(frame, nil).Frame(0, 0, len(frame)))
	})
}
