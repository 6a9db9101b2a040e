package launch

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// hear lets a leader handle what the first of two peers sends after the start.
func hear(t *testing.T, p Plan, frames []byte) *shell {
	r := newShell(p, "run", driver.Key{})
	r.ctx, r.zero, r.started = t.Context(), r.called, true
	r.Status.Enter(Solving)
	peers := slices.Clone(r.members)
	for rank, b := range [][]byte{frames, nil} {
		m := peers[rank]
		l := r.connect(m, stream{Reader: bytes.NewReader(b)})
		m.valued, m.control = true, "127.0.0.1:1"
		m.join = rendezvous.Join{Host: "h", Pid: 100 + rank}
		if rank == 0 {
			go r.serve(m, l)
		}
	}
	for {
		o := <-r.inputs
		o.event = r.eventOf(o)
		if o.closed != nil && o.closed.Error() == "end of stream" {
			return r // the messages have said enough
		}
		if r.handle(o.event); peers[0].lost || peers[1].lost || o.closed != nil {
			return r
		}
	}
}

// What no peer of a run sends costs its sender alone, wherever numbers of another process enter the leader: the run goes on,
// says the reason, and refuses the process from then on.
func TestProcessThatLiesIsExpelled(t *testing.T) {
	nan := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())), 4)
	huge := binary.LittleEndian.AppendUint64(nil, math.Float64bits(-1e300))
	chunk := func(s rendezvous.Stream) rendezvous.Message { return rendezvous.Chunk{Stream: s, Data: nan} }
	const finite, malformed = "they are not finite", "not a message of the rendezvous protocol"
	for name, c := range map[string]struct {
		sends []rendezvous.Message
		raw   string // body of the last message, in place of what it encodes to
		from  int    // rank that is expelled
		why   string
	}{
		"block of the answer":        {sends: []rendezvous.Message{chunk(rendezvous.StreamSolution)}, why: finite},
		"end of a time step":         {sends: []rendezvous.Message{chunk(rendezvous.StreamStep)}, why: finite},
		"captured face, copy, block": {sends: []rendezvous.Message{chunk(rendezvous.StreamCapture)}, why: finite},
		"block in shared memory": {sends: []rendezvous.Message{rendezvous.Result{Reason: Converged, Lost: -1, Placed: true}},
			why: finite},
		"values beyond the problem": {sends: []rendezvous.Message{rendezvous.Chunk{Stream: rendezvous.StreamCapture, Data: huge}},
			why: "far beyond those of the problem"},
		"residual":            {sends: []rendezvous.Message{rendezvous.Beat{}}, raw: `{"residual":-0.5}`, why: "Residual is -0.5"},
		"infinite residual":   {sends: []rendezvous.Message{rendezvous.Beat{}}, raw: `{"residual":1e999}`, why: malformed},
		"speed":               {sends: []rendezvous.Message{rendezvous.Beat{}}, raw: `{"busy":1e300}`, why: "Busy is 1e+300"},
		"relaxation factor":   {sends: []rendezvous.Message{rendezvous.Listen{}}, raw: `{"omega":7}`, why: "Omega is 7"},
		"residual of a block": {sends: []rendezvous.Message{rendezvous.Repaired{}}, raw: `{"residual":-1}`, why: "Residual is -1"},
		"residual of a step":  {sends: []rendezvous.Message{rendezvous.Step{}}, raw: `{"residual":-1}`, why: "Residual is -1"},
		"residual of a copy":  {sends: []rendezvous.Message{rendezvous.Captured{}}, raw: `{"residual":-1}`, why: "Residual is -1"},
		"residual of the run": {sends: []rendezvous.Message{rendezvous.Result{}}, raw: `{"residual":-1}`, why: "Residual is -1"},
		"another message":     {sends: []rendezvous.Message{rendezvous.Repaired{Epoch: 9}}, why: "it sent an unexpected"},
		"halo": {sends: []rendezvous.Message{rendezvous.Unreachable{Rank: 1, Why: "it sent NaN", Refused: true}}, from: 1,
			why: "was refused by peer 0 (pid 100 on h): it sent NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := rehearsalPlan(t)
			p.Recover, p.Suspect = rendezvous.RecoverLocal, time.Minute
			if name == "block in shared memory" {
				p.Answer = slices.Repeat([]float64{math.Inf(1)}, p.Problem.Points())
			}
			var frames []byte
			for i, m := range c.sends {
				before := len(frames)
				var err error
				frames, err = rendezvous.Append(frames, m)
				require.NoError(t, err)
				if i == len(c.sends)-1 && c.raw != "" {
					frames = append(frames[:before+5], c.raw...)
					binary.BigEndian.PutUint32(frames[before:], uint32(len(c.raw)))
				}
			}
			again := rendezvous.Join{Rank: -1, OrSpare: true, Host: "h", Pid: 100 + c.from}
			r := hear(t, p, frames)
			r.handle(r.eventOf(input{arrived: rendezvous.NewConn(stream{Reader: bytes.NewReader(nil)}, 0), join: again}))
			require.Nil(t, r.failure)
			require.Equal(t, map[process]bool{{host: "h", pid: 100 + c.from}: true}, r.banned)
			i := slices.IndexFunc(r.losses, func(l *Loss) bool { return l.Rank == c.from })
			require.GreaterOrEqual(t, i, 0)
			require.Contains(t, r.losses[i].Why, c.why)
			require.Contains(t, r.losses[i].Why, "was refused")
			require.False(t, slices.ContainsFunc(slices.Concat(r.members, r.spares), func(m *member) bool {
				return m.conn != 0 && processOf(m) == process{host: "h", pid: 100 + c.from}
			}))
		})
	}
}
