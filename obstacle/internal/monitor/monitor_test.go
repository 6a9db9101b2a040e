package monitor

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

func text(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// draw returns an arbitrary event of a run of three peers.
func draw(t *rapid.T, elapsed *time.Duration, marks *Marks) Event {
	small := rapid.Float64Range(0, 100)
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 7:
		return Sessions{} // a new epoch has none yet
	case 0:
		return Phase(rapid.SampledFrom([]string{Joining, Solving, Recovering, Judging}).Draw(t, "phase"))
	case 1:
		return Peers{{Sweep: small.Draw(t, "sweep"), Relaxing: 1}, {Lost: rapid.Bool().Draw(t, "lost")}, {}}
	case 2:
		return Reads{{By: rapid.IntRange(0, 2).Draw(t, "by"), Of: 1, Faces: 3, Mean: small.Draw(t, "mean")}}
	case 3:
		return Sessions{All: []Session{
			{From: 0, To: 1, Name: "halo/0-1", Changes: rapid.IntRange(0, 3).Draw(t, "changes"), RTT: nullable.NaN()},
			{From: 1, To: 0, Name: "halo/0-1"},
		}[:rapid.IntRange(0, 2).Draw(t, "sessions")]}
	case 4:
		for i := range *marks {
			(*marks)[i].Took = 1
		}
		*marks = append(*marks, Mark{Kind: MarkLoss, Rank: len(*marks), At: elapsed.Seconds(), Took: nullable.NaN()})
		return append(Marks{}, *marks...)
	case 5:
		return Places{{Host: rapid.SampledFrom([]string{"a", "<script>"}).Draw(t, "host")}}
	case 6:
		return Epoch(rapid.IntRange(0, 3).Draw(t, "epoch"))
	}
	*elapsed += time.Duration(rapid.IntRange(-1, 5).Draw(t, "step")) * time.Second
	r := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 0, 1, 0.5, 1e-9}).Draw(t, "residual")
	return Progress{Elapsed: *elapsed, Sweep: small.Draw(t, "sweep"), Residual: r}
}

// Whoever applies the increments has the snapshot, whenever it asks, also over JSON.
func TestIncrementsMakeTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New()
		type reader struct {
			c Cursor
			s Snapshot
		}
		readers := []*reader{{}, {}}
		ids, elapsed, marks := []int{}, []time.Duration{}, []Marks{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			if len(ids) == 0 || rapid.IntRange(0, 9).Draw(t, "begin") == 0 {
				ids = append(ids, m.Begin(0, Info{Peers: 3, Tolerance: 1e-6}))
				elapsed, marks = append(elapsed, 0), append(marks, nil)
			}
			i := rapid.IntRange(0, len(ids)-1).Draw(t, "run")
			if rapid.IntRange(0, 30).Draw(t, "end") == 0 {
				m.Add(ids[i], End{Reason: "converged", Residual: 1e-7, Elapsed: elapsed[i].Seconds()})
			} else {
				m.Add(ids[i], draw(t, &elapsed[i], &marks[i]))
			}
			for _, r := range readers {
				if rapid.Bool().Draw(t, "reads") {
					var arrived Increment
					require.NoError(t, json.Unmarshal([]byte(text(t, m.Next(&r.c))), &arrived))
					r.s.Apply(arrived)
					require.Equal(t, text(t, m.Snapshot()), text(t, r.s))
				}
			}
		}
	})
}

// Many observations keep the memory bounded, and the samples in order and spread over the whole time.
func TestSamplesAreThinned(t *testing.T) {
	m := New()
	id := m.Begin(0, Info{Peers: 1, Tolerance: 1e-6})
	var c Cursor
	var s Snapshot
	const day = 24 * 60 * 60 * 10 // ten observations a second
	for i := range day {
		m.Add(id, Progress{Elapsed: time.Duration(i) * 100 * time.Millisecond, Sweep: float64(i), Residual: 1 / float64(i+1)})
		if i%777 == 0 {
			s.Apply(m.Next(&c))
		}
	}
	s.Apply(m.Next(&c))
	r, _ := m.Newest()
	require.Less(t, len(r.Samples), MaxSamples)
	require.GreaterOrEqual(t, len(r.Samples), MaxSamples/2-1)
	require.Equal(t, r.Samples, s.Runs[0].Samples, "a reader thins them in the same way")
	gap := r.Samples[1].Time - r.Samples[0].Time
	for i := 1; i < len(r.Samples); i++ {
		require.InDelta(t, gap, r.Samples[i].Time-r.Samples[i-1].Time, 1e-6)
	}
	require.Zero(t, r.Samples[0].Time)
	require.Less(t, 24*3600-r.Samples[len(r.Samples)-1].Time, 2*gap)
}

// Every list has a largest length.
func TestBounds(t *testing.T) {
	m := New()
	for range 3 * MaxRuns {
		m.Begin(0, Info{})
	}
	require.Len(t, m.Snapshot().Runs, MaxRuns)
	const many = 4096
	id := m.Begin(0, Info{Peers: many})
	var marks Marks
	var sessions Sessions
	var reads Reads
	for i := range many {
		marks = append(marks, Mark{Kind: MarkLoss, At: float64(i)})
		sessions.All = append(sessions.All, Session{From: i, Name: "halo", Loss: float64(i)})
		for of := range 6 {
			reads = append(reads, Read{By: i, Of: (i + of*of*67) % many, Faces: 2, Mean: 3})
		}
	}
	m.Add(id, marks)
	m.Add(id, marks)
	m.Add(id, sessions)
	m.Add(id, reads)
	r, _ := m.Newest()
	require.Len(t, r.Marks, MaxMarks)
	require.Equal(t, many-MaxMarks, r.State.Dropped)
	require.Len(t, r.Sessions, MaxSessions)
	require.Equal(t, many, r.State.Sessions)
	require.Equal(t, float64(many-1), r.Sessions[0].Loss, "those that lose most are kept")
	require.Equal(t, 16, r.Info.Bin)
	require.LessOrEqual(t, len(r.Reads), MaxBins*6*2)
	faces := uint64(0)
	for _, one := range r.Reads {
		require.Less(t, one.By, MaxBins)
		require.InDelta(t, 3, one.Mean, 1e-12)
		faces += one.Faces
	}
	require.Equal(t, uint64(many*6*2), faces)
	require.Less(t, len(text(t, m.Snapshot())), 4<<20)
}

// Time does not go back, nothing changes after the end but the lists, and a forgotten run is ignored.
func TestMonotone(t *testing.T) {
	m := New()
	id := m.Begin(0, Info{Tolerance: 1e-6})
	m.Add(id, Progress{Elapsed: 5 * time.Second, Sweep: 9, Residual: 0.5})
	m.Add(id, Progress{Elapsed: 4 * time.Second, Sweep: 7, Residual: 0.25})
	r, _ := m.Newest()
	require.Equal(t, 5.0, r.State.Elapsed)
	require.Len(t, r.Samples, 1)
	m.Add(id, End{Reason: "converged", Converged: true, Elapsed: 6, Sweep: 10, Residual: 1e-7, Contact: 12})
	m.Add(id, Progress{Elapsed: 7 * time.Second, Sweep: 11, Residual: 0.5})
	m.Add(id, Phase(Solving))
	require.Equal(t, Ended, r.State.Phase)
	require.Equal(t, nullable.Number(1e-7), r.State.Residual)
	require.Equal(t, Sample{6, 10, 1e-7, 0}, r.Samples[1])
	m.Add(id+1, Phase(Solving))
}

// The time left follows from the rate at which the residual falls.
func TestTimeLeft(t *testing.T) {
	m := New()
	id := m.Begin(0, Info{Tolerance: 1e-6})
	for i := range 4 {
		m.Add(id, Progress{Elapsed: time.Duration(i) * time.Second, Sweep: float64(i), Residual: math.Pow(10, -float64(i))})
	}
	r, _ := m.Newest()
	require.Less(t, float64(r.State.LeftLeast), 3.0)
	require.Greater(t, float64(r.State.LeftMost), 3.0)
}

// A session whose composition changes is marked once, by the end with the lower rank.
func TestChangesAreMarked(t *testing.T) {
	m := New()
	id := m.Begin(0, Info{})
	both := func(changes int) Sessions {
		return Sessions{All: []Session{
			{From: 1, To: 0, Name: "halo/0-1", Changes: changes},
			{From: 0, To: 1, Name: "halo/0-1", Changes: changes, Column: "async"},
		}}
	}
	m.Add(id, both(0))
	m.Add(id, both(1))
	m.Add(id, both(1))
	r, _ := m.Newest()
	require.Len(t, r.Marks, 1)
	require.Equal(t, "halo/0-1: async", r.Marks[0].Text)
}
