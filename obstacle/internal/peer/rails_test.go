package peer

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/shm"
)

// pairOf opens a session between two nodes whose InfiniBand rails have blocks of these sizes; 0 means no rail.
func pairOf(t *testing.T, blocks ...int) []*driver.Node {
	t.Helper()
	fabric := ib.NewSoftwareFabric()
	var nodes []*driver.Node
	for i, b := range blocks {
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		c := driver.Config{Name: nodeName(i, 0), Plain: true, Rails: []driver.Rail{{Link: link}}, Listen: "127.0.0.1:0", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "r", Version: "1"}
		if b > 0 {
			require.NoError(t, fabric.Add(c.Name))
			l, err := ib.Open(ib.Config{Name: c.Name, Device: c.Name, Fabric: fabric, BlockBytes: b})
			require.NoError(t, err)
			c.Rails = append(c.Rails, driver.Rail{Network: p2psap.InfiniBand, Link: l})
		}
		n, err := driver.New(c)
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
	}
	ctx := await.Context(t)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			errs[i] = n.Connect(ctx, nodeName(1-i, 0), nodes[1-i].ControlAddr().String())
			if errs[i] == nil {
				_, errs[i] = n.Open(ctx, nodeName(1-i, 0), p2psap.OpenOptions{Name: "halo/0-1", Mode: microproto.ModeSynchronous})
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return nodes
}

func TestNoFabricInCommon(t *testing.T) {
	members := []rendezvous.Member{{Rank: 0, Host: "graphene-1"}, {Rank: 1, Host: "sagittaire-3"}}
	for name, c := range map[string]struct {
		blocks  []int
		network string
		want    string // of peer 0's error; empty: none
	}{
		"one fabric":        {[]int{8128, 8128}, rail.IB, ""},
		"Ethernet will do":  {[]int{8128, 0}, rail.Auto, ""},
		"one has none":      {[]int{8128, 0}, rail.IB, "one of them has none"},
		"different in size": {[]int{8128, 4096}, rail.IB, "4096"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := pairOf(t, c.blocks...)
			p := &endpoint{
				p:    &peer{Options: Options{Catalog: catalog.New()}, welcome: rendezvous.Welcome{Rank: 0}},
				node: nodes[0], network: c.network, assign: &rendezvous.Assign{Members: members},
			}
			err := p.reached()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "peer 0 on graphene-1 and peer 1 on sagittaire-3 do not reach each other over ib: ")
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--network auto")
		})
	}
}

// Networks are compared only where a run can gain by it.
func TestCompares(t *testing.T) {
	for what, change := range map[string]func(p *peer){
		"short messages":  func(p *peer) { p.welcome.Rails.MessageBytes = compareFrom - 8 },
		"asynchronous":    func(p *peer) { p.welcome.Rails.Synchronous = false },
		"one process":     func(p *peer) { p.Rail.Memory = shm.NewMemory() },
		"one host, IPv4":  func(p *peer) { p.Listen = "127.0.0.1" },
		"one host, IPv6":  func(p *peer) { p.Listen = "::1" },
		"localhost":       func(p *peer) { p.Listen = "localhost" },
		"nothing to gain": func(p *peer) { p.comparedInVain = true },
	} {
		p := &peer{}
		p.welcome.Rails = rendezvous.Rails{MessageBytes: compareFrom, Synchronous: true}
		e := &endpoint{p: p}
		require.True(t, e.compares(), "all addresses")
		p.Listen = "10.0.0.1"
		require.True(t, e.compares())
		change(p)
		require.False(t, e.compares(), what)
	}
}
