package software_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/suite"
	"github.com/stretchr/testify/require"
)

// rig is two adapters on a fabric, or one looped back.
func rig(t *testing.T, c software.Config, names ...string) (suite.Rig, *software.Fabric) {
	t.Helper()
	f := software.NewFabric(c)
	var plugged []*software.Adapter
	for _, n := range names {
		a, err := f.Add(n)
		require.NoError(t, err)
		plugged = append(plugged, a)
	}
	last := len(plugged) - 1
	return suite.Rig{
		Provider: f, Devices: [2]string{names[0], names[last]}, Exact: true,
		SetPort: func(end int, up bool) { require.NoError(t, plugged[min(end, last)].SetPort(1, up)) },
		Lose: func(lose func(int) bool) {
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
			c := f.Live()
			return c.Devices + c.Domains + c.Regions + c.Channels + c.Queues + c.Pairs + c.PinnedBytes
		},
	}, f
}

func TestSuite(t *testing.T) {
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
			r, f := rig(t, c.config, c.devices...)
			r.MTU = c.mtu
			suite.Run(t, r)
			require.Zero(t, f.Live())
			require.NotZero(t, f.Made().Pairs)
		})
	}
}
