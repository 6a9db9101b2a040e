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

// attacker sits on every link: it sees all frames and puts its own among them. It does
// not know the run's secret.
type attacker struct {
	c      *Cluster
	rand   *rand.Rand
	seen   [attackerMemory][]byte
	number int // of frames seen
	forged uint64
}

// attackerMemory is how many frames it keeps to send again.
const attackerMemory = 256

func newAttacker(c *Cluster) *attacker {
	return &attacker{c: c, rand: rand.New(rand.NewPCG(c.Scenario.Seed, 0x61747461636b))}
}

// watch sees a frame, or several as one, on their way.
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

// strike sends something, soon, to one of the two ends.
func (a *attacker) strike(from, to iterate.Rank) {
	frame := bytes.Clone(a.seen[a.rand.IntN(min(a.number, attackerMemory))])
	if a.rand.IntN(2) == 0 {
		from, to = to, from
	}
	body := frame[min(p2psap.HeaderBytes, len(frame)):]
	switch a.rand.IntN(7) {
	case 0: // again, or to whom it came from
	case 1:
		if len(body) > 0 {
			body[a.rand.IntN(len(body))] ^= 1 << a.rand.IntN(8)
		}
	case 2: // other bytes under the same header
		for i := range body {
			body[i] = byte(a.rand.Uint32())
		}
	case 3: // under another number
		if len(body) >= 8 {
			binary.BigEndian.PutUint64(body, a.rand.Uint64N(1<<20))
		}
	case 4: // without protection, in another epoch
		frame[0] = p2psap.WireVersion
		frame[1] += uint8(a.rand.IntN(2))
	case 5: // cut off
		frame = frame[:a.rand.IntN(len(frame))]
	case 6: // of one of the sessions of the other end
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
