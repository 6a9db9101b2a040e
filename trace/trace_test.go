package trace_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/trace"
)

// filled returns a ring with that many segments, and n of every table.
func filled(records int, o trace.Options) *trace.Ring {
	r := trace.NewRing(o)
	s := r.Session("halo 0-1", "rank 1")
	r.Layout(trace.Layout{
		Session: s, Epoch: 3, Asynchronous: true, Network: "ether", Column: "async intra ether",
		Protocols: []string{"A", "B"}, HeaderBytes: 12, Local: 7, Remote: 9,
		Fields: []trace.Field{{Protocol: "A", Name: "a.number", Offset: 8, Length: 4}},
	})
	r.PingSent(5, "rank 1", 1)
	r.PingReflected(6, "rank 1", 1)
	r.PingAnswered(9, "rank 1", 1)
	source := trace.Source{Ring: r, Session: s, Rail: 1, Epoch: 3}
	for i := range records {
		p := source.Add(int64(i), trace.SegmentOut)
		p.Number, p.Count, p.Bytes = uint64(i), 1, 12
		r.Frame(binary.BigEndian.AppendUint64(nil, uint64(i)), []byte("body"))
	}
	return r
}

func TestTheRingKeepsTheNewestRecords(t *testing.T) {
	const slots = trace.MinBytes / trace.RecordBytes
	for _, n := range []int{0, 1, slots - 1, slots, slots + 1, 2*slots + 17} {
		got := filled(n, trace.Options{Bytes: trace.MinBytes}).Snapshot(1, trace.Node{})
		require.Len(t, got.Records, min(n, slots))
		require.EqualValues(t, max(0, n-slots), got.Overwritten)
		for i, r := range got.Records {
			require.EqualValues(t, max(0, n-slots)+i, r.Number)
		}
	}
}

func TestRecordsBeginEmpty(t *testing.T) {
	r := trace.NewRing(trace.Options{Bytes: trace.MinBytes})
	for range trace.MinBytes / trace.RecordBytes {
		*r.Add(1, trace.Send) = trace.Record{Number: 1, Cause: 1, Rail: 1, Epoch: 1, Session: 1, Count: 1, Value: 1}
	}
	require.Equal(t, trace.Record{At: 2, Kind: trace.Receive}, *r.Add(2, trace.Receive))
}

func TestFramesBelongToTheirRecords(t *testing.T) {
	n := filled(3000, trace.Options{Bytes: trace.MinBytes, FrameBytes: 10}).Snapshot(1, trace.Node{})
	require.Greater(t, n.Overwritten, uint64(0))
	require.Len(t, n.Frames, len(n.Records))
	for i, r := range n.Records {
		require.Equal(t, string(binary.BigEndian.AppendUint64(nil, r.Number))+"bo", string(n.Frames[i]))
	}
}

func TestUndoneRecordsAreNotRead(t *testing.T) {
	r := trace.NewRing(trace.Options{})
	r.Add(1, trace.Send).Number = 1
	p := r.Add(2, trace.Send)
	r.Undo(p, r.Mark())
	p = r.Add(3, trace.Send)
	mark := r.Mark()
	r.Add(4, trace.SegmentOut).Number = 4
	r.Undo(p, mark)
	var numbers []uint64
	for _, r := range r.Snapshot(9, trace.Node{}).Records {
		numbers = append(numbers, r.Number)
	}
	require.Equal(t, []uint64{1, 4}, numbers)
}

func snapshot(records int) *trace.Node {
	return filled(records, trace.Options{FrameBytes: 10}).Snapshot(77, trace.Node{
		Name: "rank 0", Run: "run", Program: "v1", Cluster: "a", Host: "h", Rails: []string{"ether", "shm"},
		Began: 1e18, Wall: 1e18 + 77,
	})
}

func TestAFileHoldsItsNodes(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 4097, 9000} {
		a, b := snapshot(n), snapshot(1)
		got, err := trace.Parse(trace.Append(nil, a, b))
		require.NoError(t, err)
		require.Len(t, got, 2)
		if n == 0 {
			a.Records, a.Frames = nil, nil // the file does not distinguish them
		}
		require.Equal(t, a, got[0])
		require.Equal(t, b, got[1])
	}
}

func TestATruncatedFileIsReadAsFarAsItIsWhole(t *testing.T) {
	a := snapshot(20)
	a.Frames = nil
	whole := trace.Append(nil, a)
	tables := len(whole) - 20*trace.RecordBytes
	for n := 1; n < len(whole); n++ {
		got, err := trace.Parse(whole[:n])
		if n <= tables {
			continue // a file may end between two blocks
		}
		require.ErrorIs(t, err, trace.ErrTruncated)
		require.Equal(t, a.Sessions, got[0].Sessions)
		require.Len(t, got[0].Records, (n-tables)/trace.RecordBytes)
		for i, r := range got[0].Records {
			require.Equal(t, a.Records[i], r)
		}
	}
	for _, n := range []int{1, 9, 15, 18, 30} {
		_, err := trace.Parse(whole[:n])
		require.ErrorIs(t, err, trace.ErrTruncated, "%d bytes", n)
	}
	_, err := trace.Parse(nil)
	require.ErrorContains(t, err, "not a trace file")
}

func TestFilesOfOtherVersionsAreRefused(t *testing.T) {
	b := trace.Append(nil, snapshot(1))
	b[8] = 9
	_, err := trace.Parse(b)
	require.ErrorContains(t, err, "version 9 with records of 48 bytes; this program reads version 1")
	b[8], b[10] = trace.Version, 64
	_, err = trace.Parse(b)
	require.ErrorContains(t, err, "records of 64 bytes")
	_, err = trace.Parse([]byte("0.000001 halo raise message.from.user"))
	require.ErrorContains(t, err, "not a trace file")
}

// The first bytes of a file decide whether it is read on.
func TestCheckPreamble(t *testing.T) {
	b := trace.Append(nil, snapshot(1))
	require.NoError(t, trace.CheckPreamble(b[:trace.PreambleBytes]))
	require.ErrorIs(t, trace.CheckPreamble(b[:trace.PreambleBytes-1]), trace.ErrTruncated)
	for name, b := range map[string][]byte{"nothing": nil, "zeros": make([]byte, trace.PreambleBytes), "a zero": {0}} {
		require.ErrorContains(t, trace.CheckPreamble(b), "not a trace file", name)
	}
}

func TestTablesAreBounded(t *testing.T) {
	r := trace.NewRing(trace.Options{Bytes: trace.MinBytes})
	for i := range 1<<16 + 10 {
		name := fmt.Sprint(i)
		r.Text(name)
		r.Session(name, "")
		r.Layout(trace.Layout{Session: uint16(i), Epoch: uint8(i >> 16), Column: name})
		r.PingSent(1, name, 1)
	}
	n := r.Snapshot(1, trace.Node{})
	require.Len(t, n.Texts, 1<<16)
	require.Len(t, n.Sessions, 1<<14)
	require.Len(t, n.Layouts, 1<<14)
	require.Len(t, n.Pings, 1<<12)
	require.Equal(t, "7", n.Text(r.Text("7")))
	require.Zero(t, r.Text("one more"))
}

func FuzzParse(f *testing.F) {
	b := trace.Append(nil, snapshot(3), snapshot(0))
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(trace.Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		nodes, err := trace.Parse(b)
		if err != nil {
			return
		}
		again, err := trace.Parse(trace.Append(nil, nodes...))
		require.NoError(t, err)
		require.Len(t, again, len(nodes))
		for i, n := range nodes {
			require.Equal(t, n.Records, again[i].Records)
			require.Equal(t, n.Layouts, again[i].Layouts)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, o := range []trace.Options{{}, {FrameBytes: 64}} {
		b.Run(fmt.Sprintf("frame=%d", o.FrameBytes), func(b *testing.B) {
			source := trace.Source{Ring: trace.NewRing(o), Session: 1}
			frame := make([]byte, 1400)
			b.ReportAllocs()
			for i := range b.N {
				p := source.Add(int64(i), trace.SegmentOut)
				p.Number, p.Count, p.Bytes = uint64(i), 1, uint32(len(frame))
				p.Window, p.InFlight, p.Waiting, p.Value = 1, 2, 3, 4
				if source.Ring.KeepsFrames() {
					source.Ring.Frame(frame, nil)
				}
			}
		})
	}
}
