package cluster_test

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// A description of two sites becomes a model of seven machines: the group with a count has two, the other group has the
// rest. Check names the key of an invalid figure.
func ExampleDescription_Model() {
	d := &cluster.Description{
		Name: "two sites",
		Classes: []cluster.Class{
			{Name: "old", Cores: 1, Relaxation: 1e8},
			{Name: "new", Cores: 4, Relaxation: 1e9},
		},
		Networks: []cluster.Network{{
			Name: "gigabit", Kind: cluster.Ether, Rate: 125e6, Latency: 25 * time.Microsecond, Queue: 128 << 10,
			MTU: 1500, Frame: 38,
		}},
		Sites: []cluster.Site{
			{Name: "east", Network: "gigabit", Machines: []cluster.Group{{Class: "old", Count: 2}}},
			{Name: "west", Network: "gigabit", Machines: []cluster.Group{{Class: "new"}}},
		},
		WAN: []cluster.WANLink{{
			Between: [2]string{"east", "west"}, Rate: 12.5e6, Latency: 10 * time.Millisecond, Queue: 1 << 20,
		}},
	}
	if err := d.Check(); err != nil {
		fmt.Println(err)
		return
	}
	m, err := d.Model(7)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rank := range []int{0, 6} {
		h := m.Hosts[rank]
		fmt.Printf("rank %d: %s, %s, cores: %d\n", rank, m.Sites[h.Site], h.Name, h.Cores)
	}
	fmt.Println("latency between the sites:", m.WAN[m.WANOf(0, 1)].Latency)

	d.Networks[0].MTU = 0
	fmt.Println(d.Check())
	// Output:
	// rank 0: east, old, cores: 1
	// rank 6: west, new, cores: 4
	// latency between the sites: 10ms
	// networks.gigabit.mtu: 0 B: there should be 576 B to 65535 B on a network of kind ether
}

// Of returns the processor time of one message of 2000 bytes in two segments.
func ExampleCost_Of() {
	c := cluster.Cost{Message: 2 * time.Microsecond, Segment: time.Microsecond, Byte: 0.5}
	fmt.Println(c.Of(2, 2000))
	// Output: 5µs
}
