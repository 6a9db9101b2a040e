package ctp

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// The columns of Table I.
var (
	syncEther = []string{"TransportDriver", "Resize", "Synchronous", "SequencedSegment", "PositiveAck", "Retransmit",
		"RTTEstimation", "ReliableFIFO"}
	syncInter = append(append([]string(nil), syncEther...), "DuplicateAck", "WindowCongestionControl",
		"TCPNewRenoCongestionAvoidance")
	syncReady  = []string{"TransportDriver", "Resize", "Synchronous"} // over a reliable link
	asyncEther = []string{"TransportDriver", "Resize", "Asynchronous"}
)

// build returns the micro-protocols of one end.
func build(tb require.TestingT, names []string, o microproto.Options) []microproto.MicroProtocol {
	mps, err := Catalog().Build(names, o)
	require.NoError(tb, err)
	return mps
}

// A rig is two composites of a column, joined by a faulty link, with the calls of a user.
type rig struct {
	tb   require.TestingT
	ends [2]*microproto.Composite
	*mptest.Pair
}

func newRig(tb require.TestingT, names []string, o microproto.Options, mtu int, seed uint64, f mptest.Faults) *rig {
	return newTrainRig(tb, names, o, mtu, 0, seed, f)
}

// newTrainRig is newRig over a link that takes trains of up to so many bytes.
func newTrainRig(tb require.TestingT, names []string, o microproto.Options, mtu, train int, seed uint64,
	f mptest.Faults) *rig {
	r := &rig{tb: tb}
	for i := range r.ends {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), Seed: seed, MTU: mtu,
			Train: train}, build(tb, names, o)...)
		require.NoError(tb, err)
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], seed, f)
	return r
}

func (r *rig) open() *rig {
	require.NoError(r.tb, r.Pair.Open())
	return r
}

func (r *rig) do(end int, f func(x *microproto.Exec)) {
	if err := r.Do(end, f); err != nil { // require takes longer than most calls
		require.NoError(r.tb, err)
	}
}

func (r *rig) send(end int, tag uint32, label uint64, data []byte) (t uint64, err error) {
	r.do(end, func(x *microproto.Exec) { t, err = r.ends[end].Endpoint().Send(x, tag, label, data) })
	return t, err
}

// sendMore is send of a message that is coalesced until flush.
func (r *rig) sendMore(end int, tag uint32, label uint64, data []byte, more bool) (t uint64, err error) {
	if !more {
		return r.send(end, tag, label, data)
	}
	g := r.ends[end].Endpoint().(microproto.Coalescer)
	r.do(end, func(x *microproto.Exec) { t, err = g.SendMore(x, tag, label, data) })
	return t, err
}

// flush reports whether there was room.
func (r *rig) flush(end int) bool {
	var err error
	g := r.ends[end].Endpoint().(microproto.Coalescer)
	r.do(end, func(x *microproto.Exec) { err = g.Flush(x) })
	return err == nil
}

func (r *rig) receive(end int, tag uint32, dst []byte, labels *[]microproto.SegmentLabel) (
	a microproto.Arrival, err error,
) {
	r.do(end, func(x *microproto.Exec) { a, err = r.ends[end].Endpoint().Receive(x, tag, dst, labels) })
	return a, err
}

func (r *rig) run(d time.Duration) {
	if _, err := r.Run(d); err != nil { // require takes longer than a run of a few frames
		require.NoError(r.tb, err)
	}
}

// rest lets the whole of d pass, even if nothing is in flight.
func (r *rig) rest(d time.Duration) {
	until := r.Clock.Now().Add(d)
	r.run(d)
	r.Clock.Advance(until)
}

func (r *rig) accepted(end int) uint64 { return r.ends[end].Endpoint().Accepted() }

func (r *rig) drops(end int, reason string) uint64 {
	for _, d := range r.ends[end].Counters().Drops {
		if d.Reason == reason {
			return d.Count
		}
	}
	return 0
}

// pattern returns data that depend on the seed.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

// conformMessages returns the number of messages of each run of mptest.Conform. Zero means its default.
func conformMessages() int {
	if testing.Short() {
		return 12
	}
	return 0
}

func TestConformance(t *testing.T) {
	tried := map[string]bool{}
	lossless := mptest.Faults{Delay: 200 * time.Microsecond}
	for _, c := range []struct {
		column   string
		names    []string
		options  microproto.Options
		faults   *mptest.Faults
		reliable bool
	}{
		{"sync ether", syncEther, nil, nil, true},
		{"sync inter ether", syncInter, nil, nil, true},
		{"grants in messages", syncReady, microproto.Options{OptionGrantsInMessages: 1}, &lossless, true},
		{"sync reliable link", syncReady, nil, &lossless, true},
		{"async", asyncEther, nil, nil, false},
	} {
		for _, name := range c.names {
			if testing.Short() && tried[name] {
				continue
			}
			tried[name] = true
			t.Run(c.column+"/"+name, func(t *testing.T) {
				mptest.Conform(t, mptest.Subject{
					Protocol: name,
					New:      func(int) []microproto.MicroProtocol { return build(t, c.names, c.options) },
					Faults:   c.faults,
					Reliable: c.reliable, Violations: []error{errCoalesced},
					Messages: conformMessages(),
				})
			})
		}
	}
}

// ringFrames is a frame source that reuses its memory, as a real link does.
type ringFrames struct{ free []*microproto.Buffer }

func (f *ringFrames) Acquire(n int) microproto.Frame {
	if len(f.free) == 0 {
		f.free = append(f.free, microproto.NewBuffer(make([]byte, 2048),
			func(b *microproto.Buffer) { f.free = append(f.free, b) }))
	}
	b := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	return b.Frame(0, 0, n)
}

// plainEnd returns an open composite over frames that are reused.
func plainEnd(tb testing.TB, names []string, o microproto.Options) *microproto.Composite {
	c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 1400, Frames: &ringFrames{}},
		build(tb, names, o)...)
	require.NoError(tb, err)
	require.NoError(tb, c.Open(0))
	return c
}

func TestCatalog(t *testing.T) {
	c := Catalog()
	for _, column := range [][]string{syncEther, asyncEther, syncInter} {
		for i, mp := range build(t, column, nil) {
			require.Equal(t, column[i], mp.Name())
		}
	}
	for _, bad := range []struct {
		name string
		o    microproto.Options
	}{
		{"TransportDriver", microproto.Options{OptionPortLocal: 0}},
		{"TransportDriver", microproto.Options{OptionPortRemote: 65536}},
		{"Resize", microproto.Options{OptionMessageMax: -1}},
		{"Synchronous", microproto.Options{OptionReceive: 1}},
		{"SequencedSegment", microproto.Options{OptionFirst: 1 << 32}},
		{"PositiveAck", microproto.Options{OptionAckEvery: 0}},
		{"Retransmit", microproto.Options{OptionInFlight: 0}},
		{"RTTEstimation", microproto.Options{OptionRTOFloor: 0}},
		{"ReliableFIFO", microproto.Options{OptionReceive: 0}},
		{"TCPNewRenoCongestionAvoidance", microproto.Options{OptionInitialWindow: 11}},
	} {
		_, err := c.Build([]string{bad.name}, bad.o)
		for key := range bad.o {
			require.ErrorContains(t, err, key, bad.name)
		}
	}
}

// The catalog describes the optional rows: label, help and columns.
func TestOptionalRows(t *testing.T) {
	c := Catalog()
	require.Equal(t, []string{"NegativeAck"}, c.Labels(""))
	require.Equal(t, []string{"newreno", "cubic"}, c.Labels(GroupCongestion))
	inter := microproto.Column{Mode: microproto.ModeSynchronous}
	intra := microproto.Column{Mode: microproto.ModeSynchronous, Intra: true}
	for _, want := range []struct {
		group, label, protocol string
		columns                []microproto.Column
	}{
		{GroupCongestion, "cubic", CUBICCongestionAvoidance, []microproto.Column{inter}},
		{GroupCongestion, "newreno", "TCPNewRenoCongestionAvoidance", nil},
		{"", "NegativeAck", "NegativeAck", []microproto.Column{intra, inter}},
	} {
		r, err := c.Row(want.group, want.label)
		require.NoError(t, err)
		require.Equal(t, want.protocol, r.Protocol)
		require.Equal(t, want.columns, r.Columns)
		require.NotEmpty(t, r.Help)
		for _, column := range r.Columns {
			rows := syncInter
			if column.Intra {
				rows = syncEther
			}
			_, err := microproto.NewComposite(microproto.Config{Name: "row", MTU: 1400},
				build(t, append(slices.Clone(rows), r.Protocol), nil)...)
			require.NoError(t, err)
		}
	}
}

// The third data segment is lost, and is sent again because three later ones have arrived.
func TestTranscript(t *testing.T) {
	text := mptest.NewTranscript("a")
	var ends [2]*microproto.Composite
	for i, tr := range []microproto.Tracer{text, text.Join("b")} {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 150, Tracer: tr},
			build(t, syncEther, nil)...)
		require.NoError(t, err)
		ends[i] = c
	}
	r := &rig{tb: t, ends: ends, Pair: mptest.NewPair(ends[0], ends[1], 1, calm)}
	data := 0
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			data++
		}
		return end != 0 || data != 3
	}
	r.open()
	_, err := r.send(0, tag, 1, pattern(480, 1))
	require.NoError(t, err)
	r.run(20 * time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0))
	got, _ := r.drain(1, 480)
	require.Len(t, got, 1)
	require.NoError(t, r.Pair.Close())
	mptest.Golden(t, "lost_segment.txt", text.String())
}
