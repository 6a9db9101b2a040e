package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range samples() {
		data := m.encode()
		require.LessOrEqual(t, len(data), AgreementBytes(16))
		got, err := decodeMessage(data, 16)
		require.NoError(t, err)
		require.True(t, m.squares.Equal(&got.squares) && m.start.Equal(&got.start))
		require.Equal(t, data, got.encode())
		for cut := range data {
			_, err = decodeMessage(data[:cut], 16)
			require.Error(t, err, "kind %d, %d bytes", m.kind, cut)
		}
		_, err = decodeMessage(append(data, 0), 16)
		require.Error(t, err)
		data[0]++
		_, err = decodeMessage(data, 16)
		require.ErrorContains(t, err, "version 7")
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, m := range samples() {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data, 16)
		if err != nil {
			return
		}
		again, err := decodeMessage(m.encode(), 16)
		require.NoError(t, err)
		require.Equal(t, m.kind, again.kind)
		require.Equal(t, m.number, again.number)
		require.Equal(t, m.step, again.step)
		require.Equal(t, m.reason, again.reason)
		require.Equal(t, m.mark, again.mark)
		require.Equal(t, m.count, again.count)
		require.True(t, m.squares.Equal(&again.squares))
	})
}

// FuzzAgree feeds any messages, in any state, to a worker in the middle of the
// tree: it may refuse them, it must not panic, spin or say that it is done without
// a reason.
func FuzzAgree(f *testing.F) {
	for i, m := range samples() {
		f.Add(m.encode(), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8) {
		p := membrane([3]int{2, 2, 4}, 3)
		if what&4 != 0 {
			p.Reaction.Of = func(q Point) float64 { return q[0] }
		}
		part, err := Slabs(p.N, 3, nil)
		require.NoError(t, err)
		if what&8 != 0 {
			base := *p
			p.Evolution = &Evolution{End: 1, Steps: 3, At: func(float64) *Problem { q := base; return &q }}
		}
		schemes := []Scheme{Synchronous(), Asynchronous(), BoundedDelay(0), Hybrid([]int{0, 0, 1})}
		w, err := NewWorker(Config{Problem: p, Partition: part, Scheme: schemes[what%4], Rank: 1, MaxSweeps: 5, Reconfigure: what&16 != 0, Balance: what&32 != 0, BalanceWindow: 1})
		require.NoError(t, err)
		for n := 0; n < 8; n++ {
			for range 30 {
				op := w.Next(0)
				switch op.Kind {
				case OpRelax:
					w.Relax(op)
				case OpSend:
					w.Pack(op, make([]byte, op.Bytes))
				}
				if op.Kind == OpWait || op.Kind == OpDone {
					break
				}
			}
			q := Rank(2 * (int(what>>3) >> n & 1))
			size := min(len(data), 1+int(what)*n)
			_ = w.Agree(0, q, data)
			_ = w.Agree(0, q, data[:size])
			_ = w.Halo(0, q, uint32(n)%2, packLabel(int(what>>4)%4, int(what>>6)%3, Iteration(what)%3), make([]byte, 32))
		}
		if w.Next(0).Kind == OpDone {
			require.NotEqual(t, Running, w.Outcome().Reason)
		}
	})
}

func TestAgreeNamesThePeer(t *testing.T) {
	p := membrane([3]int{2, 2, 6}, 3)
	part, err := Slabs(p.N, 3, nil)
	require.NoError(t, err)
	make3 := func(s Scheme) *Worker {
		w, err := NewWorker(Config{Problem: p, Partition: part, Scheme: s, Rank: 1})
		require.NoError(t, err)
		return w
	}
	for name, c := range map[string]struct {
		scheme Scheme
		from   Rank
		m      message
		want   string
	}{
		"stranger":             {Synchronous(), 1, message{kind: msgClose}, "rank 1, which is no neighbour"},
		"verdict from a child": {Synchronous(), 2, message{kind: msgVerdict}, "rank 2: kind"},
		"residual from parent": {Synchronous(), 0, message{kind: msgResidual}, "rank 0: kind"},
		"early verdict":        {Synchronous(), 0, message{kind: msgVerdict}, "not complete here"},
		"late residual":        {Synchronous(), 2, message{kind: msgResidual, number: 64}, "iterate 64 while"},
		"face in lockstep":     {Synchronous(), 2, message{kind: msgFace, values: make([]byte, 32)}, "does not use"},
		"far snapshot":         {Asynchronous(), 2, message{kind: msgFace, number: 2, values: make([]byte, 32)}, "snapshot 2 while 0"},
		"short face":           {Asynchronous(), 2, message{kind: msgFace, values: make([]byte, 8)}, "8 bytes where 32"},
		"early verdict, async": {Asynchronous(), 0, message{kind: msgVerdict}, "not complete here"},
		"close, async":         {Asynchronous(), 0, message{kind: msgClose}, "does not use"},
		"early close":          {BoundedDelay(0), 0, message{kind: msgClose}, "before this peer"},
		"stop for nothing":     {Synchronous(), 2, message{kind: msgStop}, "stop for reason 0"},
		"a step":               {Synchronous(), 0, message{kind: msgStep, a: 1}, "coefficients vary"},
		"a diagonal of 0":      {Synchronous(), 2, message{kind: msgDiagonal}, "coefficients vary"},
	} {
		w := make3(c.scheme)
		require.ErrorContains(t, w.Agree(0, c.from, c.m.encode()), c.want, name)
	}
	w := make3(Synchronous())
	require.ErrorContains(t, w.Halo(0, 2, 0, 0, make([]byte, 8)), "rank 2 has 8 bytes")
	require.ErrorContains(t, w.Halo(0, 2, 2, 0, make([]byte, 32)), "tag 2")
	require.ErrorContains(t, w.Halo(0, 2, 1, 0, make([]byte, 32)), "under tag 1")
	require.ErrorContains(t, w.Halo(0, 2, 1, 3, make([]byte, 32)), "cannot have made")
	require.ErrorContains(t, w.Halo(0, 1, 0, 0, make([]byte, 32)), "no neighbour")
	require.NoError(t, w.Halo(0, 2, 1, 1, make([]byte, 32)))
}
