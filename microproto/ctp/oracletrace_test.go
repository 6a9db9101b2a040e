package ctp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// oracleTrace sends one message over a random path. It returns the transmissions, those of the
// oracle for the same acknowledgements, and the sending end.
func oracleTrace(t *testing.T, seed uint64) (did []transmission, o *oracle, r *rig) {
	const ms = time.Millisecond
	x := rand.New(rand.NewPCG(seed, 0x6f7261636c65))
	pick := func(d ...time.Duration) time.Duration { return d[x.IntN(len(d))] }
	rtt := time.Duration(float64(5*ms) * float64(1+x.IntN(300)))
	first, floor := pick(200*ms, 1000*ms, 3*rtt), pick(20*ms, 200*ms)
	granularity, most := pick(ms/10, 200*ms), pick(time.Second, time.Minute)
	most = max(most, first)
	options := microproto.Options{
		OptionAckEvery: int64(1 + x.IntN(2)), OptionAckDelay: int64(5 * ms),
		OptionInitialWindow: 3, OptionRTOInitial: int64(first),
		OptionRTOFloor: int64(floor), OptionGranularity: int64(granularity), OptionRTOMax: int64(most),
	}
	loss := [...]float64{0, 0.02, 0.1, 0.3}[x.IntN(4)]
	faults := mptest.Faults{Delay: rtt / 2, Jitter: 1 + time.Duration(x.Int64N(int64(rtt/2))), Loss: loss,
		Duplicate: []float64{0, 0.05}[x.IntN(2)]}
	if x.IntN(3) == 0 {
		faults.Reorder, faults.ReorderBy = 0.1, rtt
	}
	r = newRig(t, syncInter, options, 160, seed, faults)
	r.open()
	w := r.ends[0].Protocol("WindowCongestionControl").(*WindowCongestionControl)
	total := 10 + x.IntN(110)
	o = newOracle(w.shared.Unit, total, 3, first, floor, granularity, most)
	number, flags := offsetOf(r.ends[0], attrNumber), offsetOf(r.ends[0], attrFlags)
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 && f.Data[flags]&flagData != 0 {
			did = append(did, transmission{r.Clock.Now(), int(binary.BigEndian.Uint32(f.Data[number:])) - 1})
		}
		return true
	}
	require.NoError(t, r.Do(0, func(x *microproto.Exec) {
		o.credit = *r.ends[0].Protocol("DuplicateAck").(*DuplicateAck).grant
		_, err := microproto.BindNow(x, AckArrived, microproto.First, func(x *microproto.Exec, a Ack) {
			o.ack(x.Now(), int(a.Next)-1, a.Seen, a.Credit, a.Alone)
		})
		require.NoError(t, err)
	}))
	_, err := r.send(0, tag, 1, pattern(total**w.segment, seed))
	require.NoError(t, err)
	o.fill(r.Clock.Now())
	// A burst of losses somewhere.
	r.run(time.Duration(x.Int64N(int64(10 * rtt))))
	r.Link.Partition(x.IntN(2), true)
	r.run(time.Duration(x.Int64N(int64(2 * rtt))))
	for end := range 2 {
		r.Link.Partition(end, false)
	}
	for k := 0; k < 600 && r.accepted(0) == 0; k++ {
		r.run(10 * time.Second)
	}
	require.EqualValues(t, 1, r.accepted(0), "seed %d", seed)
	return did, o, r
}

// Every transmission and its instant are those that the RFCs require.
func TestOracle(t *testing.T) {
	traces := uint64(3000)
	timeouts, again := 0, 0
	if testing.Short() {
		traces = 300
	}
	for seed := range traces {
		did, o, r := oracleTrace(t, seed)
		for i := range min(len(did), len(o.out)) {
			require.Equal(t, o.out[i], did[i], "seed %d, transmission %d", seed, i)
		}
		require.Len(t, did, len(o.out), "seed %d", seed)
		shared := r.ends[0].Protocol("WindowCongestionControl").(*WindowCongestionControl).shared
		require.Equal(t, o.cwnd, shared.Controller.Window(), "seed %d", seed)
		require.Equal(t, o.ssthresh, shared.Controller.Threshold(), "seed %d", seed)
		require.Equal(t, o.rto, *r.ends[0].Protocol("RTTEstimation").(*RTTEstimation).rto, "seed %d", seed)
		timeouts += o.timeouts
		again += len(did) - o.total
	}
	t.Logf("%d traces, %d time-outs, %d segments sent again", traces, timeouts, again)
	require.Greater(t, timeouts, int(traces))
}
