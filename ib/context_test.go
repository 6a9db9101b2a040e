package ib

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// sysfs reads a tree and the adapters in it.
func sysfs(t *testing.T, name string) (fstest.MapFS, []adapter) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata/sysfs", name+".txtar"))
	require.NoError(t, err)
	tree := fstest.MapFS{}
	for _, f := range a.Files {
		tree[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	var found []adapter
	for l := range strings.Lines(string(a.Comment)) {
		words := strings.Fields(l)
		if len(words) < 3 || words[0] != "adapter" {
			continue
		}
		d := adapter{name: words[1], ipoibPorts: map[string]int{}}
		if words[2] != "-" {
			d.nodes = strings.Split(words[2], ",")
		}
		for _, s := range words[3:] {
			netdev, port, _ := strings.Cut(s, "=")
			d.ipoibPorts[netdev], err = strconv.Atoi(port)
			require.NoError(t, err)
		}
		found = append(found, d)
	}
	return tree, found
}

func TestPortsGolden(t *testing.T) {
	for _, name := range []string{"mlx5", "odd"} {
		tree, found := sysfs(t, name)
		got, err := json.MarshalIndent(readPorts(tree, found), "", "\t")
		require.NoError(t, err)
		mptest.Golden(t, filepath.Join("sysfs", name+".json"), string(got)+"\n")
	}
}

func host(t *testing.T, name string) Context {
	tree, found := sysfs(t, name)
	var driven []string
	for _, a := range found {
		driven = append(driven, a.name)
	}
	return describeHost(tree, found, driven, nil, LockLimit{Bytes: 8 << 20})
}

func TestChoose(t *testing.T) {
	c := host(t, "mlx5")
	for _, w := range []struct {
		want   Want
		device string
		port   int
		gid    int
		why    string
	}{
		{Want{}, "mlx5_0", 1, 0, "mlx5_0 port 1 is active, 100 Gb/sec (4X EDR); the best of 2 that can be used"},
		{Want{Device: "mlx5_1"}, "mlx5_1", 1, 10,
			"mlx5_1 port 1 is active, 100 Gb/sec (4X EDR); the other ports, 1, cannot be used"},
		{Want{Device: "mlx5_1", Port: 1, GID: "fe80::268a:7ff:fead:7e13"}, "mlx5_1", 1, 1,
			"mlx5_1 port 1 is active, 100 Gb/sec (4X EDR)"},
		{Want{Port: 1, Bytes: 8 << 20}, "mlx5_0", 1, 0,
			"mlx5_0 port 1 is active, 100 Gb/sec (4X EDR); the best of 2 that can be used"},
	} {
		got, err := c.Choose(w.want)
		require.NoError(t, err)
		require.Equal(t, w.device, got.Port.Device)
		require.Equal(t, w.port, got.Port.Number)
		require.Equal(t, w.gid, got.GID.Index)
		require.Equal(t, w.why, got.Why)
	}
	// A faster port comes before the first by name and before InfiniBand.
	c.Ports[1].Gigabits = 200
	got, err := c.Choose(Want{})
	require.NoError(t, err)
	require.Equal(t, "mlx5_1", got.Port.Device)
}

// The error names all obstacles at once, each with its remedy.
func TestMissing(t *testing.T) {
	mlx5, odd := host(t, "mlx5"), host(t, "odd")
	none := describeHost(fstest.MapFS{}, nil, nil, errors.New("no libibverbs.so.1"), LockLimit{Bytes: 64 << 10})
	noKernel := fmt.Errorf("%w: no ib_uverbs", verbs.ErrNoKernel)
	bare := describeHost(fstest.MapFS{"class/infiniband/x": {}}, nil, nil, noKernel, LockLimit{Bytes: -1})
	tree, found := sysfs(t, "mlx5")
	undriven := describeHost(tree, found, []string{"mlx5_1"}, nil, LockLimit{})
	naked := host(t, "mlx5")
	naked.Ports[1].Identifiers = nil
	for _, w := range []struct {
		host Context
		want Want
		what []string
	}{
		{none, Want{Bytes: 16 << 20}, []string{
			"the kernel has no RDMA", "libibverbs cannot be used (no libibverbs.so.1)",
			"64 KiB (ulimit -l, RLIMIT_MEMLOCK), is below the 16384 KiB",
		}},
		{bare, Want{}, []string{"there is no RDMA device (rdma link add"}},
		{mlx5, Want{Device: "mlx4_0"}, []string{
			`no RDMA device "mlx4_0" (there are mlx5_0 port 1, mlx5_1 port 1, mlx5_1 port 2)`,
		}},
		{mlx5, Want{Device: "mlx5_0", Port: 2}, []string{"the RDMA device mlx5_0 has no port 2"}},
		{mlx5, Want{Port: 3}, []string{"no RDMA device has a port 3"}},
		{mlx5, Want{Port: 2}, []string{"mlx5_1 port 2: the link is DOWN"}},
		{mlx5, Want{GID: "fe80::2"}, []string{"no GID fe80::2 at mlx5_0 port 1 (there are fe80::248a:703:ad:7e12)"}},
		{mlx5, Want{Bytes: 8<<20 + 1}, []string{"raise it to 8193 KiB or more"}},
		{naked, Want{Device: "mlx5_1"}, []string{"mlx5_1 port 1 has no GID"}},
		{undriven, Want{Device: "mlx5_0"}, []string{"mlx5_0 port 1: libibverbs has no driver for it"}},
		{odd, Want{}, []string{
			"rxe0 port 1: it has no character device: load ib_uverbs, " +
				"siw0 port 1: an iWARP adapter has no unreliable connected pairs",
		}},
	} {
		_, err := w.host.Choose(w.want)
		var missing *MissingError
		require.True(t, errors.As(err, &missing), "%v: %v", w.want, err)
		require.Len(t, missing.Missing, len(w.what))
		for _, text := range w.what {
			require.ErrorContains(t, err, text)
		}
	}
}

func TestLockLimit(t *testing.T) {
	require.True(t, LockLimit{Bytes: 10}.Allows(10))
	require.False(t, LockLimit{Bytes: 10}.Allows(11))
	require.True(t, LockLimit{Bytes: 10, Exempt: true}.Allows(11))
	require.True(t, LockLimit{Bytes: -1}.Allows(1<<60))
	require.GreaterOrEqual(t, lockLimit().Bytes, int64(-1))
}

// Attributes of the kernel are parsed, and implausible values rejected.
func TestKernelAttributes(t *testing.T) {
	for text, want := range map[string]float64{
		"2.5 Gb/sec (1X SDR)": 2.5, "400 Gb/sec": 400, "NaN Gb/sec": 0, "+Inf Gb/sec": 0, "-1 Gb/sec": 0,
		"": 0, "10": 0, "10 Mb/sec": 0,
	} {
		require.Equal(t, want, gigabits(text), text)
	}
	p := Port{Layer: "Ethernet", Identifiers: []Identifier{
		{0, netip.MustParseAddr("fe80::1"), "IB/RoCE v1", "e"}, {3, netip.MustParseAddr("2001:db8::1"), "IB/RoCE v1", "e"},
		{5, netip.MustParseAddr("fe80::1"), "RoCE v2", "e"},
	}}
	got, missing := p.identifier("")
	require.Empty(t, missing)
	require.Equal(t, 5, got.Index, "version 2 goes before an address of the network")
}
