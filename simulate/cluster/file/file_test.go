package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

const everything = `
name: lab
about: |
  Everything that a description can say.
sources: [a bench, "a data sheet: page 2"]
machines:
  old:
    relaxation: 100 Mpoint/s
    copies: true
    straggle: {rate: 0.5 /s, for: 100 ms}
    slow: 2.5
  new:
    cores: 4
    relaxation: 1.5e9 point/s
    send: {message: 5 us, segment: 1 µs, byte: 0.3 ns}
    receive: {segment: 1500 ns}
    jitter: 2 %
    part: 2 us
    crowding: 15 %
    wake: {after: 70 us, takes: 25 us}
networks:
  gigabit: {kind: ether, rate: 1 Gbit/s, latency: 25 us, queue: 128 KiB, mtu: 1500 B, frame: 38 B, loss: 0.1 %,
            jitter: 3 us, backplane: 1 GB/s}
  fast: {kind: ib, rate: 16 Gbit/s, latency: 2 us, queue: 64 kB, mtu: 8128 B}
sites:
  east:
    network: gigabit
    machines: [{class: old, count: 3}, {class: new}]
  north: {network: gigabit, machines: [{class: new, together: true}]}
  8: {network: fast, machines: [{class: new}]}
wide:
  - {between: [east, north], rate: 100 Mbit/s, latency: 5 ms, queue: 1 MiB, loss: 1 %, jitter: 1 ms}
  - {between: [east, 8], rate: 100 Mbit/s, latency: 5 ms, queue: 1 MiB}
  - {between: ["8", north], rate: 100 Mbit/s, latency: 5 ms, queue: 1 MiB}
events:
  - {at: 10 s, rank: 3, slow: 5}
  - {at: 1 min, rank: 0, lost: true}
  - {at: 0 s, until: 20 s, cut: [east, north]}
  - {at: 0 s, cut: [north]}
  - {at: 0 s, apart: [1, 2], launcher: true}
  - {at: 1 s, launcher: true, killed: true}
`

func TestParse(t *testing.T) {
	f, err := Parse("dir/f.yaml", []byte(everything))
	require.NoError(t, err)
	require.Equal(t, cluster.Description{
		Name: "lab", About: "Everything that a description can say.", Sources: []string{"a bench", "a data sheet: page 2"},
		Classes: []cluster.Class{
			{Name: "old", Cores: 1, Relaxation: 1e8, Copies: true, Straggle: cluster.Straggle{PerSecond: 0.5,
				For: 100 * time.Millisecond}, Slow: 2.5},
			{Name: "new", Cores: 4, Relaxation: 1.5e9, Jitter: 0.02, Part: 2000, Crowding: 0.15, Wake: cluster.Wake{After: 70000,
				Takes: 25000},
				Send:    cluster.Cost{Message: 5 * time.Microsecond, Segment: time.Microsecond, Byte: 0.3},
				Receive: cluster.Cost{Segment: 1500}},
		},
		Networks: []cluster.Network{
			{Name: "gigabit", Kind: "ether", Rate: 125e6, Latency: 25 * time.Microsecond, Queue: 131072, MTU: 1500, Frame: 38,
				Loss: 0.001, Jitter: 3 * time.Microsecond, Backplane: 1e9},
			{Name: "fast", Kind: "ib", Rate: 2e9, Latency: 2 * time.Microsecond, Queue: 64000, MTU: 8128},
		},
		Sites: []cluster.Site{
			{Name: "east", Network: "gigabit", Machines: []cluster.Group{{Class: "old", Count: 3}, {Class: "new"}}},
			{Name: "north", Network: "gigabit", Machines: []cluster.Group{{Class: "new", OneMachine: true}}},
			{Name: "8", Network: "fast", Machines: []cluster.Group{{Class: "new"}}},
		},
		WAN: []cluster.WANLink{
			{Between: [2]string{"east", "north"}, Rate: 12.5e6, Latency: 5 * time.Millisecond, Queue: 1 << 20, Loss: 0.01,
				Jitter: time.Millisecond},
			{Between: [2]string{"east", "8"}, Rate: 12.5e6, Latency: 5 * time.Millisecond, Queue: 1 << 20},
			{Between: [2]string{"8", "north"}, Rate: 12.5e6, Latency: 5 * time.Millisecond, Queue: 1 << 20},
		},
		Events: []cluster.Event{
			{At: 10 * time.Second, Rank: 3, Slow: 5}, {At: time.Minute, Lost: true},
			{Until: 20 * time.Second, Cut: [2]string{"east", "north"}}, {Cut: [2]string{"north"}},
			{Apart: []int{1, 2}, Launcher: true}, {At: time.Second, Launcher: true, Killed: true},
		},
	}, f.Description)
	text := Explain(&f.Description).String()
	for _, part := range []string{"3 × old, then as many as are asked for × new; network gigabit", "0.5 /s on average",
		"2.5 times slower", "on one machine, × new", "15 % longer for every other core", "25µs to wake after a wait of " +
			"more than 70µs", "the network of north is cut in halves",
		"nothing passes between the launcher, machine 1, machine 2 and all others", "the launcher is killed"} {
		require.Contains(t, text, part)
	}
	_, err = f.Model(3)
	require.EqualError(t, err, "dir/f.yaml:36: events[0].rank: 3: the ranks of 3 machines are 0 to 2")
}

// A description without a name has the file's.
func TestName(t *testing.T) {
	text, ok := BuiltinText("graphene-eth")
	require.True(t, ok)
	f, err := Parse(filepath.Join("some", "where.else.yaml"), text)
	require.NoError(t, err)
	require.Equal(t, "where.else", f.Name)
}

func TestOpen(t *testing.T) {
	_, err := Open("graphen-eth", "this-machine")
	require.EqualError(t, err,
		`no model of a cluster is called "graphen-eth" (did you mean "graphene-eth"?); there are graphene-eth, graphene-ib, `+
			`grid-0.1ms, grid-10ms, grid-18ms, grid-4ms, this-machine, or give a file`)
	dir := t.TempDir()
	_, err = Open(filepath.Join(dir, "none.yaml"))
	require.EqualError(t, err, filepath.Join(dir, "none.yaml")+": there is no such file")
	_, err = Open(dir + "/")
	require.EqualError(t, err, dir+"/: it is not a regular file")

	name := filepath.Join(dir, "lab.yaml")
	require.NoError(t, os.WriteFile(name, []byte(everything), 0o600))
	f, err := Open(name)
	require.NoError(t, err)
	require.False(t, f.Builtin)
	require.True(t, Detect(name))
	require.NoError(t, os.WriteFile(name, []byte("dimension: 3\nobstacle: \"0\"\n"), 0o600))
	require.False(t, Detect(name))
	require.NoError(t, os.WriteFile(name, []byte("machines: 3"), 0o600))
	require.True(t, Detect(name), "wrong, but meant to be one")
	require.False(t, Detect(filepath.Join(dir, "none.yaml")))
}

// Every built-in description makes clusters of any size and has sources for its figures. The
// distance of two sites is the one in its name.
func TestBuiltins(t *testing.T) {
	for _, name := range Builtins() {
		f, err := Open(name)
		require.NoError(t, err)
		require.Equal(t, name, f.Name)
		require.True(t, f.Builtin)
		require.NotEmpty(t, f.Sources)
		require.NotEmpty(t, f.About)
		require.Zero(t, Explain(&f.Description).MostMachines)
		m, err := f.Model(4096)
		require.NoError(t, err)
		require.Len(t, m.Hosts, 4096)
		var ms float64
		if n, _ := fmt.Sscanf(name, "grid-%fms", &ms); n == 1 {
			line := m.WAN[m.WANOf(0, 1)]
			round := 2 * (line.Latency + m.Networks[0].Latency + m.Networks[m.Hosts[4095].Network].Latency)
			require.InDelta(t, ms/1e3, round.Seconds(), 1e-9)
			require.Equal(t, 0, m.Hosts[2047].Site)
			require.Equal(t, 1, m.Hosts[2048].Site)
		}
	}
}

// A description that is written is read again, to the last bit.
func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		require.NoError(t, d.Check())
		text := Format(d)
		f, err := Parse("f.yaml", text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, *d, f.Description, "%s", text)
	})
}

func draw(t *rapid.T) *cluster.Description {
	name := func(label string) string {
		return rapid.StringMatching(`[a-z0-9"'#:é~{-][ a-zA-Z0-9.:#\\"'%_-]{0,6}[a-z0-9"':\\]`).Draw(t, label)
	}
	distinct := func(label string, most int) []string {
		return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			return rapid.OneOf(rapid.SampledFrom([]string{"a", "true", "null", "12", "~", "1e3", "- b", "yes"}),
				rapid.StringMatching(`[a-z:#"'\\]{1,5}`)).Draw(t, "name")
		}), 1, most, rapid.ID[string]).Draw(t, label)
	}
	pause := func(label string) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, label))
	}
	rate := rapid.Float64Range(1, 1e15)
	share := rapid.Float64Range(0, 0.999999)
	cost := func(label string) cluster.Cost {
		return cluster.Cost{Message: pause(label), Segment: pause(label), Byte: rapid.Float64Range(0, 1e6).Draw(t, label)}
	}
	d := &cluster.Description{Name: name("name"), About: rapid.StringMatching(`|[a-z"\\:#é]{1,9}`).Draw(t, "about")}
	d.Sources = append(d.Sources, distinct("sources", 3)...)
	for _, n := range distinct("classes", 3) {
		c := cluster.Class{Name: n, Cores: rapid.IntRange(1, 99).Draw(t, "cores"), Relaxation: rate.Draw(t, "rate"),
			Copies: rapid.Bool().Draw(t, "copies"),
			Send:   cost("send"), Receive: cost("receive"), Jitter: share.Draw(t, "jitter"),
			Part: pause("part"), Crowding: rapid.Float64Range(0, 100).Draw(t,
				"crowding"), Wake: cluster.Wake{After: pause("after"), Takes: pause("takes")}}
		if rapid.Bool().Draw(t, "slow") {
			c.Slow = rapid.Float64Range(1, 1e6).Draw(t, "factor")
			c.Straggle = cluster.Straggle{PerSecond: rapid.Float64Range(1e-9, 1e6).Draw(t, "straggle"), For: pause("for")}
			if c.Straggle.For == 0 {
				c.Straggle = cluster.Straggle{}
			}
		}
		d.Classes = append(d.Classes, c)
	}
	for _, n := range distinct("networks", 2) {
		v := cluster.Network{Name: n, Kind: cluster.Ether, Rate: rate.Draw(t, "rate"), Latency: pause("latency"),
			Queue: rapid.IntRange(1<<18, 1<<40).Draw(t, "queue"),
			MTU:   rapid.IntRange(576, 65535).Draw(t, "mtu"), Frame: rapid.IntRange(0, 100).Draw(t,
				"frame"), Jitter: pause("jitter")}
		if v.Kind = rapid.SampledFrom([]string{cluster.Ether, cluster.IB}).Draw(t, "kind"); v.Kind == cluster.Ether {
			v.Loss, v.Backplane = share.Draw(t, "loss"), rate.Draw(t, "backplane")
			if rapid.Bool().Draw(t, "shaped") {
				v.Shaper = cluster.Shaper{Rate: rate.Draw(t, "shaper"), Burst: rapid.IntRange(0, 1<<20).Draw(t, "burst"),
					Queue: rapid.IntRange(1<<18, 1<<30).Draw(t, "waits"), Outside: rapid.Bool().Draw(t, "outside")}
			}
		}
		d.Networks = append(d.Networks, v)
	}
	for _, n := range distinct("sites", 3) {
		s := cluster.Site{Name: n, Network: d.Networks[rapid.IntRange(0, len(d.Networks)-1).Draw(t, "network")].Name}
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			s.Machines = append(s.Machines, cluster.Group{Class: d.Classes[rapid.IntRange(0, len(d.Classes)-1).Draw(t,
				"class")].Name, Count: rapid.IntRange(0, 50).Draw(t, "count"), OneMachine: rapid.Bool().Draw(t, "together")})
		}
		for _, other := range d.Sites {
			d.WAN = append(d.WAN, cluster.WANLink{Between: [2]string{other.Name, n}, Rate: rate.Draw(t, "rate"),
				Latency: pause("latency"), Queue: 1 << 20, Jitter: pause("jitter")})
		}
		d.Sites = append(d.Sites, s)
	}
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		e := cluster.Event{At: pause("at")}
		switch rapid.IntRange(0, 5).Draw(t, "event") {
		case 4:
			e.Apart = rapid.SliceOfNDistinct(rapid.IntRange(0, 50), 1, 4, rapid.ID).Draw(t, "apart")
			e.Launcher = rapid.Bool().Draw(t, "launcher")
		case 5:
			e.Launcher = true
			e.Killed = rapid.Bool().Draw(t, "killed")
			e.Lost = !e.Killed && rapid.Bool().Draw(t, "lost")
		case 0:
			e.Rank, e.Lost = rapid.IntRange(0, 50).Draw(t, "rank"), true
		case 3:
			e.Rank, e.Killed = rapid.IntRange(0, 50).Draw(t, "rank"), true
		case 1:
			e.Rank = rapid.IntRange(0, 50).Draw(t, "rank")
			e.Slow = rapid.Float64Range(1, 9).Draw(t, "slow")
			e.Until = e.At + 1 + pause("until")
		default:
			e.Cut[0] = d.Sites[0].Name
			if len(d.Sites) > 1 {
				e.Cut[1] = d.Sites[1].Name
			}
		}
		d.Events = append(d.Events, e)
	}
	return d
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	for _, name := range Builtins() {
		text, _ := BuiltinText(name)
		f.Add(text)
	}
	f.Add([]byte("machines: {a: {relaxation: 1e999999 point/s}}\nnetworks: &x [*x]\nsites: !!t |\n  q\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := Parse("f.yaml", text)
		if err != nil {
			require.ErrorContains(t, err, "f.yaml")
			return
		}
		_ = Explain(&g.Description).String()
		again, err := Parse("f.yaml", Format(&g.Description))
		require.NoError(t, err)
		require.Equal(t, g.Description, again.Description)
		if m, err := g.Model(5); err == nil {
			require.Len(t, m.Hosts, 5)
		}
	})
}

// The description in the guide is valid and uses every key.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "simulation.md"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(guide), "```yaml\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "```")
	require.True(t, found)
	f, err := Parse("lab.yaml", []byte(text))
	require.NoError(t, err)
	for _, keys := range [][]string{documentKeys, classKeys, costKeys, straggleKeys, networkKeys, shaperKeys, siteKeys,
		groupKeys, wideKeys, eventKeys} {
		for _, key := range keys {
			require.Contains(t, text, key+":")
		}
	}
	_, err = f.Model(20)
	require.NoError(t, err)
}
