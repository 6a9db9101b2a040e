package verbs_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
)

// softwareRig returns two adapters on a fabric, or one looped back.
func softwareRig(t *testing.T, c software.Config, names ...string) (rig, *software.Fabric) {
	t.Helper()
	f := software.NewFabric(c)
	var adapters []*software.Adapter
	for _, n := range names {
		a, err := f.Add(n)
		require.NoError(t, err)
		adapters = append(adapters, a)
	}
	last := len(adapters) - 1
	return rig{
		Provider: f, Devices: [2]string{names[0], names[last]}, Exact: true,
		SetPort: func(end int, up bool) { adapters[min(end, last)].SetPort(up) },
		SetLoss: func(lose func(int) bool) {
			if lose == nil {
				f.SetRule(nil)
				return
			}
			n := 0
			f.SetRule(func(p software.Packet) software.Fault {
				if p.Ack {
					return software.Fault{}
				}
				n++
				return software.Fault{Drop: lose(n - 1)}
			})
		},
		Open: func() int64 {
			var open int64
			for _, n := range f.Live() {
				open += n
			}
			return open
		},
	}, f
}

func TestSoftware(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  software.Config
		devices []string
		mtu     int
	}{
		{"InfiniBand", software.Config{}, []string{"soft0", "soft1"}, 1024},
		{"Looped", software.Config{MTU: 2048}, []string{"soft0"}, 2048},
		{"RoCE", software.Config{Layer: verbs.LayerEthernet, MTU: 1024}, []string{"soft0", "soft1"}, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the suite waits for timeouts
			r, f := softwareRig(t, c.config, c.devices...)
			r.MTU = c.mtu
			runSuite(t, r)
			require.Zero(t, f.Live())
			require.NotZero(t, f.Made()[software.Pairs])
		})
	}
}
