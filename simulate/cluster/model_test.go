package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// two returns two sites with two classes and two networks.
func two() *Description {
	ether := Network{Name: "gigabit", Kind: Ether, Rate: 125e6, Latency: 25 * time.Microsecond, Queue: 1 << 17, MTU: 1500,
		Frame: 38}
	ib := Network{Name: "fast", Kind: IB, Rate: 2e9, Latency: time.Microsecond, Queue: 1 << 16, MTU: 8128}
	return &Description{
		Name:     "two",
		Classes:  []Class{{Name: "old", Cores: 1, Relaxation: 1e8}, {Name: "new", Cores: 4, Relaxation: 1e9}},
		Networks: []Network{ether, ib},
		Sites: []Site{
			{Name: "east", Network: "gigabit", Machines: []Group{{Class: "old", Count: 3}, {Class: "new"}}},
			{Name: "west", Network: "fast", Machines: []Group{{Class: "new"}}},
		},
		WAN: []WANLink{{Between: [2]string{"west", "east"}, Rate: 125e6, Latency: time.Millisecond, Queue: 1 << 20}},
		Events: []Event{
			{At: time.Second, Rank: 1, Slow: 5},
			{At: 0, Until: time.Minute, Cut: [2]string{"east", "west"}},
		},
	}
}

func TestModel(t *testing.T) {
	d := two()
	require.NoError(t, d.Check())
	m, err := d.Model(8)
	require.NoError(t, err)
	var got []string
	for _, h := range m.Hosts {
		got = append(got, h.Name+" "+m.Sites[h.Site]+" "+m.Networks[h.Network].Name)
	}
	o := "old east gigabit"
	n := "new east gigabit"
	w := "new west fast"
	require.Equal(t, []string{o, o, o, n, n, n, w, w}, got, "5 shared by two open groups, the earlier has 3")
	require.Equal(t, 0, m.WANOf(0, 1))
	require.Equal(t, 0, m.WANOf(1, 0))
	require.Equal(t, -1, m.WANOf(1, 1))
	require.Equal(t, []time.Duration{0, time.Second}, []time.Duration{m.Events[0].At, m.Events[1].At}, "in order of time")
	require.Equal(t, time.Second, d.Events[0].At, "the description is as it was")

	m, err = d.Model(2)
	require.NoError(t, err)
	require.Len(t, m.Hosts, 2)
	require.Equal(t, "old", m.Hosts[1].Name)

	_, err = d.Model(1)
	require.EqualError(t, err, "events[0].rank: 1: the ranks of 1 machines are 0 to 0")
	_, err = d.Model(0)
	require.EqualError(t, err, "0 machines: there should be 1 to 1048576")
	d.Sites[0].Machines[1].Count, d.Sites[1].Machines[0].Count = 1, 2
	_, err = d.Model(7)
	require.EqualError(t, err,
		"sites: 7 machines are asked for, and the description has 6; leave out the count of a group to have as many as "+
			"are asked for")
}

// The model has the requested number of machines, groups with a count do not exceed it, and the
// others differ by at most one.
func TestModelShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := two()
		d.Events = nil
		machines := rapid.IntRange(1, 300).Draw(t, "machines")
		fixed := 0
		for s := range d.Sites {
			d.Sites[s].Machines = nil
			for range rapid.IntRange(1, 4).Draw(t, "groups") {
				n := rapid.IntRange(0, 40).Draw(t, "count")
				fixed += n
				d.Sites[s].Machines = append(d.Sites[s].Machines, Group{Class: "old", Count: n})
			}
		}
		require.NoError(t, d.Check())
		m, err := d.Model(machines)
		if most, open := d.Most(); !open && machines > most {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Len(t, m.Hosts, machines)
		low, high := math.MaxInt, 0
		for s, counts := range d.share(machines) {
			for g, n := range counts {
				if c := d.Sites[s].Machines[g].Count; c > 0 {
					require.LessOrEqual(t, n, c)
					if machines >= fixed {
						require.Equal(t, c, n)
					}
					continue
				}
				low, high = min(low, n), max(high, n)
			}
		}
		require.LessOrEqual(t, high-min(low, high), 1)
		for r := 1; r < machines; r++ {
			require.LessOrEqual(t, m.Hosts[r-1].Site, m.Hosts[r].Site, "sites are filled in order")
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	require.NoError(t, two().Check())
	for want, spoil := range map[string]func(d *Description){
		`name: "": a name has 1 to 100 bytes`:      func(d *Description) { d.Name = "" },
		`name: " a": a name has`:                   func(d *Description) { d.Name = " a" },
		`machines: there is none`:                  func(d *Description) { d.Classes = nil },
		`machines.old: there are two of that name`: func(d *Description) { d.Classes[1].Name = "old" },
		`machines.old.cores: 0`:                    func(d *Description) { d.Classes[0].Cores = 0 },
		`machines.old.relaxation: NaN`:             func(d *Description) { d.Classes[0].Relaxation = math.NaN() },
		`machines.old.relaxation: +Inf`:            func(d *Description) { d.Classes[0].Relaxation = math.Inf(1) },
		`machines.old.jitter: 200 %`:               func(d *Description) { d.Classes[0].Jitter = 2 },
		`machines.new.slow: 0.5`:                   func(d *Description) { d.Classes[1].Slow = 0.5 },
		`machines.new.straggle: a pause has both`:  func(d *Description) { d.Classes[1].Straggle.PerSecond = 1 },
		`machines.new.straggle.for: -1s`: func(d *Description) {
			d.Classes[1].Straggle = Straggle{1,
				-time.Second}
		},
		`machines.new.send.segment: -1ns`: func(d *Description) { d.Classes[1].Send.Segment = -1 },
		`machines.new.receive.message: 2h`: func(d *Description) {
			d.Classes[1].Receive.Message = 2 * time.Hour
		},
		`machines.new.send.byte: NaN`:                    func(d *Description) { d.Classes[1].Send.Byte = math.NaN() },
		`networks: there is none`:                        func(d *Description) { d.Networks = nil },
		`networks.gigabit.kind: "token ring"`:            func(d *Description) { d.Networks[0].Kind = "token ring" },
		`networks.gigabit.rate: 0 B/s`:                   func(d *Description) { d.Networks[0].Rate = 0 },
		`networks.gigabit.latency: -1ns`:                 func(d *Description) { d.Networks[0].Latency = -1 },
		`networks.gigabit.queue: 1000 B: it should hold`: func(d *Description) { d.Networks[0].Queue = 1000 },
		`networks.gigabit.mtu: 70000 B`:                  func(d *Description) { d.Networks[0].MTU = 70000 },
		`networks.gigabit.frame: -1 B`:                   func(d *Description) { d.Networks[0].Frame = -1 },
		`networks.gigabit.loss: 100 %`:                   func(d *Description) { d.Networks[0].Loss = 1 },
		`networks.gigabit.jitter: -1ns`:                  func(d *Description) { d.Networks[0].Jitter = -1 },
		`networks.gigabit.backplane: -5 B/s`:             func(d *Description) { d.Networks[0].Backplane = -5 },
		`networks.gigabit.shaper.rate: 0 B/s`: func(d *Description) {
			d.Networks[0].Shaper = Shaper{Queue: 1 << 20}
		},
		`networks.gigabit.shaper.burst: -1 B`: func(d *Description) {
			d.Networks[0].Shaper = Shaper{Rate: 1e6, Burst: -1, Queue: 1 << 20}
		},
		`networks.gigabit.shaper.queue: 9 B: it should hold`: func(d *Description) {
			d.Networks[0].Shaper = Shaper{Rate: 1e6, Queue: 9}
		},
		`networks.fast.shaper: on a network of kind ib`: func(d *Description) {
			d.Networks[1].Shaper = Shaper{Rate: 1e6, Queue: 1 << 20}
		},
		`networks.fast.loss: the adapter`:              func(d *Description) { d.Networks[1].Loss = 0.1 },
		`sites: there is none`:                         func(d *Description) { d.Sites = nil },
		`sites.east.network: "slow": there is no such`: func(d *Description) { d.Sites[0].Network = "slow" },
		`sites.east.machines: there is none`:           func(d *Description) { d.Sites[0].Machines = nil },
		`sites.east.machines[1].class: "x": there is`: func(d *Description) {
			d.Sites[0].Machines[1].Class = "x"
		},
		`sites.east.machines[0].count: -1`: func(d *Description) {
			d.Sites[0].Machines[0].Count = -1
		},
		`wide: there is no line between east and west`: func(d *Description) { d.WAN = nil },
		`wide[0].between: "north": there is no such`:   func(d *Description) { d.WAN[0].Between[0] = "north" },
		`wide[0].between: "east" twice`:                func(d *Description) { d.WAN[0].Between[0] = "east" },
		`wide[1].between: there is a line between`: func(d *Description) {
			d.WAN = append(d.WAN, d.WAN[0])
		},
		`wide[0].rate: +Inf`: func(d *Description) { d.WAN[0].Rate = math.Inf(1) },
		`wide[0].queue: 5000 B: it should hold one frame of 8128 B`: func(d *Description) { d.WAN[0].Queue = 5000 },
		`wide[0].loss: site west is on a network of kind ib`:        func(d *Description) { d.WAN[0].Loss = 0.1 },
		`wide[0].latency: 2h`: func(d *Description) {
			d.WAN[0].Latency = 2 * time.Hour
		},
		`events[0]: there should be one of slow, lost, killed, cut and apart`: func(d *Description) { d.Events[0].Lost = true },
		`events[0].at: -1s`: func(d *Description) { d.Events[0].At = -time.Second },
		`events[0].until: 500ms: it should come after`: func(d *Description) {
			d.Events[0].Until = 500 * time.Millisecond
		},
		`events[0].until: a machine that is lost`: func(d *Description) {
			d.Events[0] = Event{Lost: true,
				Until: 5}
		},
		`events[0].slow: NaN`:                           func(d *Description) { d.Events[0].Slow = math.NaN() },
		`events[0].rank: -1`:                            func(d *Description) { d.Events[0].Rank = -1 },
		`events[1].rank: a cut, or an event of the`:     func(d *Description) { d.Events[1].Rank = 2 },
		`events[1]: a cut is between sites (cut), or`:   func(d *Description) { d.Events[1].Apart = []int{1} },
		`events[1].apart: -1: ranks are 0 to`:           func(d *Description) { d.Events[1] = Event{Apart: []int{-1}} },
		`events[1].apart: 3 twice`:                      func(d *Description) { d.Events[1] = Event{Apart: []int{3, 3}} },
		`events[0].launcher: the launcher does not`:     func(d *Description) { d.Events[0].Launcher = true },
		`events[1].cut: "north": there is no such site`: func(d *Description) { d.Events[1].Cut[1] = "north" },
		`events[1].cut: "": there is no such site`:      func(d *Description) { d.Events[1].Cut[0] = "" },
		`events[1].cut: "east" twice`:                   func(d *Description) { d.Events[1].Cut[1] = "east" },
	} {
		d := two()
		spoil(d)
		err := d.Check()
		require.ErrorContains(t, err, want)
		require.IsType(t, &Error{}, err)
	}
}

func TestCostOf(t *testing.T) {
	c := Cost{Message: 5 * time.Microsecond, Segment: time.Microsecond, Byte: 0.5}
	require.Equal(t, 9*time.Microsecond, c.Of(3, 2000))
	require.Zero(t, Cost{}.Of(3, 2000))
}

// The ranks of a group with OneMachine share a machine, and those of other groups do not.
func TestTogether(t *testing.T) {
	d := two()
	d.Sites[0].Machines[0].OneMachine, d.Sites[1].Machines[0].OneMachine = true, true
	m, err := d.Model(8)
	require.NoError(t, err)
	var got []int
	for _, h := range m.Hosts {
		got = append(got, h.Machine)
	}
	require.Equal(t, []int{1, 1, 1, 0, 0, 0, 2, 2}, got)
}
