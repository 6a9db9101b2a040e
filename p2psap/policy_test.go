package p2psap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

func golden(t *testing.T, path, got string) {
	t.Helper()
	mptest.Golden(t, strings.TrimPrefix(path, "testdata/"), got)
}

// table renders Table I from the policy, for every condition of each column.
func table(t *testing.T) string {
	conditions := func(c Column) (out []Conditions) {
		for l := SameProcess; l <= OtherCluster; l++ {
			for n := Ethernet; n <= Memory; n++ {
				if l.Intra() == c.Intra && (n == Ethernet) != c.InfiniBand {
					out = append(out, Conditions{Mode: c.Mode, Locality: l, Network: n})
				}
			}
		}
		return out
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s", "")
	var cells [][]string
	for _, column := range microproto.Columns() {
		fmt.Fprintf(&b, " | %-16s", column)
		var first Composition
		for i, c := range conditions(column) {
			got, err := TablePolicy{}.Compose(c)
			require.NoError(t, err)
			if i == 0 {
				first = got
			}
			require.Equal(t, first, got, "%v", c)
			require.Equal(t, column.String(), got.Column)
			require.LessOrEqual(t, len(got.Protocols), control.MaxProtocols)
		}
		cells = append(cells, first.Protocols)
	}
	b.WriteByte('\n')
	for _, row := range TableRows() {
		fmt.Fprintf(&b, "%-30s", row)
		for _, cell := range cells {
			mark := ""
			for i, name := range cell {
				if name == row {
					mark = fmt.Sprintf("x %d", i+1) // its place in the stack
				}
			}
			fmt.Fprintf(&b, " | %-16s", mark)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTableI(t *testing.T) { golden(t, "testdata/table1.golden", table(t)) }

func TestRTOFloors(t *testing.T) {
	option := func(p TablePolicy, m microproto.Mode, l Locality, key string) time.Duration {
		c, err := p.Compose(Conditions{Mode: m, Locality: l, Network: Ethernet})
		require.NoError(t, err)
		return time.Duration(c.Options[key])
	}
	at := func(p TablePolicy, l Locality) time.Duration {
		return option(p, microproto.ModeSynchronous, l, OptionRTOFloor)
	}
	require.Equal(t, 2*time.Millisecond, at(TablePolicy{}, SameCluster))
	require.Equal(t, 200*time.Millisecond, at(TablePolicy{}, OtherCluster))
	require.Equal(t, time.Second, at(TablePolicy{Intra: time.Second}, SameHost))
	require.Equal(t, time.Minute, at(TablePolicy{Inter: time.Minute}, OtherCluster))
	for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		require.Equal(t, time.Minute, option(TablePolicy{}, m, OtherCluster, OptionRTOMax), "RFC 6298 §2.5")
		require.Equal(t, 200*time.Millisecond, option(TablePolicy{}, m, OtherCluster, OptionRTOGranularity))
		require.Equal(t, time.Second, option(TablePolicy{}, m, SameCluster, OptionRTOMax), "bounds the pause after an outage")
		require.Zero(t, option(TablePolicy{}, m, SameCluster, OptionRTOGranularity))
		require.Zero(t, option(TablePolicy{}, m, SameCluster, OptionProbeMargin), "the time-out is as short")
		slow := TablePolicy{Inter: 2 * time.Minute}
		require.Equal(t, 2*time.Minute, option(slow, m, OtherCluster, OptionRTOMax))
		composed, err := slow.Compose(Conditions{Mode: m, Locality: OtherCluster, Network: Ethernet})
		require.NoError(t, err)
		_, err = ctp.Catalog().Build(composed.Protocols, composed.Options)
		require.NoError(t, err)
	}
}

// Options add rows behind those of the table, in the columns that they name, and
// their settings with them.
func TestOptionalRows(t *testing.T) {
	inter := Column{Mode: microproto.ModeSynchronous}
	p := TablePolicy{Optional: []OptionalRow{
		{Protocol: "CUBIC", Columns: []Column{inter}, Options: microproto.Options{"cubic.x": 7}},
		{Protocol: "Parity", Columns: microproto.Columns()},
	}}
	for _, column := range microproto.Columns() {
		c := Conditions{Mode: column.Mode, Locality: SameHost, Network: Ethernet}
		if !column.Intra {
			c.Locality = OtherCluster
		}
		if column.InfiniBand {
			c.Network = InfiniBand
		}
		plain, err := TablePolicy{}.Compose(c)
		require.NoError(t, err)
		require.Empty(t, plain.Optional)
		got, err := p.Compose(c)
		require.NoError(t, err)
		want, wantCUBIC := []string{"Parity"}, int64(0)
		if column == inter {
			want, wantCUBIC = []string{"CUBIC", "Parity"}, 7
		}
		require.Equal(t, want, got.Optional, "%v", column)
		require.Equal(t, append(plain.Protocols, want...), got.Protocols)
		require.Equal(t, wantCUBIC, got.Options["cubic.x"])
		require.Equal(t, plain.Column, got.Column)
	}
}

// The fixed window of Retransmit does not limit a column with a congestion window.
func TestFixedWindow(t *testing.T) {
	for l, want := range map[Locality]microproto.Options{SameHost: {},
		OtherCluster: {"window.bytes": 8 << 20, "window.segments": 4096, OptionProbeMargin: int64(InterProbeMargin),
			OptionSelective: 1}} {
		c, err := TablePolicy{}.Compose(Conditions{Mode: microproto.ModeSynchronous, Locality: l, Network: Ethernet})
		require.NoError(t, err)
		for _, key := range []string{OptionRTOFloor, OptionRTOGranularity, OptionRTOMax} {
			delete(c.Options, key)
		}
		require.Equal(t, want, c.Options)
	}
}

func TestConditionsOutsideTheTable(t *testing.T) {
	for _, c := range []Conditions{
		{Mode: 0, Locality: SameHost, Network: Ethernet}, {Mode: 3, Locality: SameHost,
			Network: Ethernet}, {Mode: microproto.ModeSynchronous, Locality: 0, Network: Ethernet},
		{Mode: microproto.ModeSynchronous, Locality: 5, Network: Ethernet}, {Mode: microproto.ModeSynchronous,
			Locality: SameHost, Network: 0}, {Mode: microproto.ModeSynchronous, Locality: SameHost, Network: 6},
	} {
		_, err := TablePolicy{}.Compose(c)
		require.ErrorContains(t, err, "no column of Table I", "%v", c)
	}
}

// A column whose micro-protocols the catalog lacks is refused; the error names them.
func TestMissingMicroProtocols(t *testing.T) {
	intra := standIns("SequencedSegment", "PositiveAck", "Retransmit", "RTTEstimation", "ReliableFIFO")
	w := newWorld(t, 1)
	far := func(cluster string) func(*NodeConfig) {
		return func(c *NodeConfig) { c.Cluster, c.Rails[0].Network, c.Catalog = cluster, Ethernet, intra }
	}
	a := w.add("a", far("east"))
	w.add("b", far("west"))
	w.connect()
	w.run(10 * time.Millisecond)
	require.Equal(t, OtherCluster, a.Finding("b").Locality)
	_, err := a.Open(w.now, "b", syncOptions("s"))
	require.EqualError(t, err, `p2psap: the column "sync inter ether" of Table I needs micro-protocols that this `+
		"program does not have: DuplicateAck, WindowCongestionControl, TCPNewRenoCongestionAvoidance")
	_, err = a.Open(w.now, "b", asyncOptions("s"))
	require.ErrorContains(t, err, "DCCPAck, DCCPWindowCongestionControl, TCPCongestionAvoidance")

	composition, err := TablePolicy{}.Compose(Conditions{Mode: microproto.ModeSynchronous, Locality: SameHost,
		Network: Ethernet})
	require.NoError(t, err)
	require.NoError(t, Missing(intra, composition))
}

// Over kernel TCP, where each frame of its own costs a system call, messages carry the grants. The rest is the column
// of networks that recover losses themselves.
func TestGrantsInMessagesOverKernelTCP(t *testing.T) {
	for n := Ethernet; n.Valid(); n++ {
		got, err := TablePolicy{}.Compose(Conditions{Mode: microproto.ModeSynchronous, Locality: SameCluster, Network: n})
		require.NoError(t, err)
		require.EqualValues(t, map[bool]int{true: 1}[n == Stream], got.Options[ctp.OptionGrantsInMessages], "%v", n)
	}
	stream := Conditions{Mode: microproto.ModeSynchronous, Locality: SameCluster, Network: Stream}
	over, err := TablePolicy{}.Compose(stream)
	require.NoError(t, err)
	stream.Network = InfiniBand
	ib, err := TablePolicy{}.Compose(stream)
	require.NoError(t, err)
	require.Equal(t, ib.Protocols, over.Protocols)
}
