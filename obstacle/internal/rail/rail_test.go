package rail

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/shm"
)

func TestEffective(t *testing.T) {
	for _, c := range []struct{ run, own, want string }{
		{Auto, "", Auto}, {Auto, Auto, Auto}, {Auto, Ether, Ether}, {Auto, IB, IB},
		{IB, "", IB}, {IB, Auto, IB}, {IB, IB, IB}, {Ether, "", Ether}, {Ether, Auto, Ether}, {Ether, Ether, Ether},
	} {
		got, err := Effective(c.run, c.own)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c)
	}
	for _, c := range [][2]string{{IB, Ether}, {Ether, IB}} {
		_, err := Effective(c[0], c[1])
		require.ErrorContains(t, err, "the run has --network "+c[0]+", this peer --network "+c[1])
	}
}

func TestSoftwareRanks(t *testing.T) {
	has, is, err := SoftwareRanks("software", 3)
	require.NoError(t, err)
	require.True(t, is)
	require.Equal(t, []bool{true, true, true}, has)
	has, is, err = SoftwareRanks("software:2,0", 3)
	require.NoError(t, err)
	require.True(t, is)
	require.Equal(t, []bool{true, false, true}, has)
	for _, device := range []string{"", "mlx5_0", "softwares"} {
		_, is, err = SoftwareRanks(device, 3)
		require.NoError(t, err)
		require.False(t, is, device)
	}
	for _, device := range []string{"software:", "software:3", "software:-1", "software:0;1", "software:0,"} {
		_, _, err = SoftwareRanks(device, 3)
		require.ErrorContains(t, err, "ranks from 0 to 2", device)
	}
}

// A peer that solve starts gets the flags of solve.
func TestArgsAreRead(t *testing.T) {
	given := Flags{Network: "ib", Device: "mlx5_1", Port: 2, GID: "fe80::1", Blocks: 64, Completion: "poll"}
	for _, f := range []Flags{given, {Completion: "spin"}} {
		var got Flags
		set := pflag.NewFlagSet("peer", pflag.ContinueOnError)
		set.StringVar(&got.Network, "network", "", "")
		got.Add(set)
		require.NoError(t, set.Parse(f.Args()))
		require.Equal(t, f, got)
		require.NoError(t, got.Check(links))
	}
}

var links = []string{Ether, Memory, Shared, IB}

func TestCheck(t *testing.T) {
	good := Run{Network: Auto, Mode: Segments, BlockBytes: 8128}
	require.NoError(t, good.Check(links))
	for _, r := range []Run{
		{Network: "pigeon", Mode: Segments, BlockBytes: 8128}, {Network: Auto, Mode: "message", BlockBytes: 8128},
		{Network: Auto, Mode: Segments, BlockBytes: 100}, {Network: Auto, Mode: Segments, BlockBytes: 1 << 21},
	} {
		require.Error(t, r.Check(links), "%v", r)
	}
	for _, f := range []Flags{
		{Network: "pigeon"}, {Port: -1}, {Port: 256}, {Blocks: -1}, {Blocks: 1<<20 + 1}, {Completion: "interrupt"},
	} {
		require.Error(t, f.Check(links), "%v", f)
	}
}

// The registered memory depends on the mode and the number of blocks.
func TestRegisters(t *testing.T) {
	bytes := func(f Flags, run rendezvous.Rails) int64 {
		h := Host{Flags: f}
		n, err := Registers(h.Config("peer", run))
		require.NoError(t, err)
		return n
	}
	published := bytes(Flags{}, rendezvous.Rails{Mode: Segments, BlockBytes: 8128, Neighbours: 2})
	require.InDelta(t, 2000*8128, published, 4096)
	require.InDelta(t, 200*8128, bytes(Flags{Blocks: 100}, rendezvous.Rails{Mode: Segments, BlockBytes: 8128, Neighbours: 2}), 4096)
	large := rendezvous.Rails{Mode: Messages, BlockBytes: 8128, MessageBytes: 1 << 20, Neighbours: 2}
	require.Greater(t, bytes(Flags{}, large), int64(32<<20))
	large.Mode, large.Values = OneSided, 2
	h := Host{}
	c := h.Config("peer", large)
	window, err := c.WindowBytes()
	require.NoError(t, err)
	require.GreaterOrEqual(t, window, int64(2<<20))
	require.Greater(t, bytes(Flags{}, large), 2*window, "two neighbours have a window each")
}

func TestNothingIsOpenedForEthernet(t *testing.T) {
	h := Host{}
	o, why, err := h.Open("peer-0", Ether, rendezvous.Rails{}, nil)
	require.NoError(t, err)
	require.Nil(t, o)
	require.Equal(t, "--network ether", why)
}

// Missing InfiniBand is an error for ib and a reason for auto.
func TestWhatIsMissing(t *testing.T) {
	h := Host{Flags: Flags{Device: "no-such-device"}}
	run := rendezvous.Rails{Mode: Segments, BlockBytes: 8128, Neighbours: 1}
	_, _, err := h.Open("peer-0", IB, run, nil)
	var missing *ib.MissingError
	require.ErrorAs(t, err, &missing)
	require.NotEmpty(t, missing.Missing)
	o, why, err := h.Open("peer-0", Auto, run, nil)
	require.NoError(t, err)
	require.Nil(t, o)
	require.Contains(t, why, missing.Missing[0].What)
}

func TestWithout(t *testing.T) {
	h := Host{Without: "left out"}
	run := rendezvous.Rails{Mode: Segments, BlockBytes: 8128, Neighbours: 1}
	o, why, err := h.Open("peer-0", Auto, run, nil)
	require.NoError(t, err)
	require.Nil(t, o)
	require.Equal(t, "left out", why)
	_, _, err = h.Open("peer-0", IB, run, nil)
	require.ErrorContains(t, err, "--network ib: left out")
}

// Each peer of a software fabric gets its own adapter.
func TestSoftwareRail(t *testing.T) {
	h := Host{Fabric: ib.NewSoftwareFabric()}
	for _, mode := range Modes() {
		for _, name := range []string{"peer-0", "peer-1"} {
			run := rendezvous.Rails{Mode: mode, BlockBytes: 4096, MessageBytes: 20000, Values: 2, Neighbours: 1}
			o, _, err := h.Open(mode+name, IB, run, nil)
			require.NoError(t, err)
			require.Equal(t, SoftwareAdapter, o.Device)
			require.GreaterOrEqual(t, o.Link.Caps(microproto.ModeSynchronous).MTU, map[bool]int{true: 4096, false: 20000}[mode == Segments])
			require.NoError(t, o.Link.Close())
		}
	}
}

// Without asynchronous sessions the memory of a pair does not grow with the messages.
func TestOutboxBytes(t *testing.T) {
	var h Host
	synchronous, err := h.OutboxBytes(rendezvous.Rails{MessageBytes: 8 << 20})
	require.NoError(t, err)
	require.Less(t, synchronous, int64(4<<20))
	asynchronous, err := h.OutboxBytes(rendezvous.Rails{MessageBytes: 8 << 20, Values: 1})
	require.NoError(t, err)
	require.Greater(t, asynchronous, int64(3*(8<<20)))
}

// Peers of one process use memory, others shared memory, and only peers with the same label find each other.
func TestShared(t *testing.T) {
	run := rendezvous.Rails{MessageBytes: 1 << 20, Values: 2, Neighbours: 1}
	memory := shm.NewMemory()
	open := func(h Host, rail, name, cluster, network string) (*shm.Link, string) {
		t.Helper()
		l, why, err := h.OpenShared(rail, name, cluster, network, run, nil)
		require.NoError(t, err)
		if l == nil {
			return nil, why
		}
		t.Cleanup(func() { _ = l.Close() })
		require.GreaterOrEqual(t, l.Caps(microproto.ModeAsynchronous).MTU, run.MessageBytes+microproto.MaxHeaderBytes)
		return l.(*shm.Link), why
	}
	process, none := Host{Memory: memory}, Host{}
	for _, c := range []struct {
		host          Host
		rail, network string
		why           string // why it is not opened
	}{
		{process, Memory, Auto, ""}, {process, Memory, Memory, ""}, {process, Shared, Shared, ""},
		{process, Shared, Auto, "memory of one process"}, {none, Memory, Auto, "one peer"}, {none, Shared, Auto, ""},
		{none, Shared, Shared, ""}, {none, Shared, Ether, "--network ether"}, {process, Memory, IB, "--network ib"},
		{Host{Memory: memory, Fabric: ib.NewSoftwareFabric()}, Memory, Auto, "--ib-device software"},
		{Host{Memory: memory, Without: "left out"}, Memory, Auto, "--ib-device software"},
	} {
		l, why := open(c.host, c.rail, "peer-0", "", c.network)
		require.Equal(t, c.why == "", l != nil, "%+v: %s", c, why)
		require.Contains(t, why, c.why)
	}
	_, _, err := none.OpenShared(Memory, "peer-0", "", Memory, run, nil)
	require.ErrorContains(t, err, "--network memory: this process runs one peer")
	huge := run
	huge.MessageBytes = 1 << 30
	_, why, err := none.OpenShared(Shared, "peer-0", "", Auto, huge, nil)
	require.NoError(t, err)
	require.Contains(t, why, "must be")
	_, _, err = none.OpenShared(Shared, "peer-0", "", Shared, huge, nil)
	require.ErrorContains(t, err, "--network shm: shm: ")

	for _, network := range []string{Auto, Shared} {
		a, _ := open(none, Shared, "a", "east", network)
		b, _ := open(none, Shared, "b", "west", network)
		offer, err := a.Offer("b")
		require.NoError(t, err)
		if _, err = b.Accept(offer); network == Auto {
			require.ErrorIs(t, err, shm.ErrGroup)
		} else {
			require.NoError(t, err)
		}
	}
}
