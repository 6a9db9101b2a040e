package file

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const small = `machines:
  pc: {relaxation: 1 Gpoint/s}
networks:
  lan: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 128 KiB, mtu: 1500 B}
sites:
  here:
    network: lan
    machines:
      - class: pc
        count: 4
  there:
    network: lan
    machines: [{class: pc}]
wide:
  - between: [here, there]
    rate: 1 Gbit/s
    latency: 5 ms
    queue: 1 MiB
events:
  - at: 1 s
    rank: 0
    lost: true
`

// Each error names the file, the line, the key and the reason, and what to do.
func TestRefusals(t *testing.T) {
	_, err := Parse("f.yaml", []byte(small))
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{small, "", "f.yaml: the cluster file is empty"},
		{small, "a: [", "f.yaml:1: this is not YAML: sequence end token ']' not found"},
		{small, "- a", "f.yaml:1: there should be keys with values (name: …), not a list"},
		{"machines:\n", "machine:\n",
			`f.yaml:1: unknown key "machine" (did you mean "machines"?); the keys are name, about, sources, machines, ` +
				`networks, sites, wide, events`},
		{"  pc: {", "  pc: {tempo: 3, ",
			`f.yaml:2: machines.pc: unknown key "tempo"; the keys are cores, relaxation, copies, send, receive, jitter, ` +
				`straggle, slow, part, crowding, wake`},
		{"  pc: {relaxation: 1 Gpoint/s}", "  pc: {cores: 2}",
			`f.yaml:2: machines.pc.relaxation: it is missing: there should be a rate of relaxation, as "0.33 Gpoint/s"`},
		{"  pc: {relaxation: 1 Gpoint/s}", "  pc:",
			"f.yaml:2: machines.pc: there should be keys with values (cores: …), not nothing"},
		{"machines:\n  pc: {relaxation: 1 Gpoint/s}", "machines:",
			"f.yaml:1: machines: it is missing: there should be classes of machines by name"},
		{"machines:\n  pc: {relaxation: 1 Gpoint/s}", "machines: [pc]",
			"f.yaml:1: machines: there should be classes of machines by name (name: …), not a list"},
		{"1 Gpoint/s", "1e9", `f.yaml:2: machines.pc.relaxation: 1e9 has no unit; write a rate of relaxation with ` +
			`one, as "0.33 Gpoint/s"`},
		{"1 Gpoint/s", "fast",
			`f.yaml:2: machines.pc.relaxation: "fast" is not a rate of relaxation; write a number with a unit, as "0.33 ` +
				`Gpoint/s"`},
		{"1 Gpoint/s", ".inf",
			`f.yaml:2: machines.pc.relaxation: there should be a rate of relaxation, as "0.33 Gpoint/s", not .inf`},
		{"1 Gpoint/s", "1e400 Gpoint/s", "f.yaml:2: machines.pc.relaxation: 1e400 Gpoint/s is out of range"},
		{"1 Gpoint/s", "0 point/s", "f.yaml:2: machines.pc.relaxation: 0 point/s: there should be 1 to 1e+15"},
		{"1 Gbit/s, latency", "1 Gb/s, latency",
			`f.yaml:4: networks.lan.rate: unknown unit "Gb/s" (did you mean "Gbit/s"?); the units of a rate are B/s, ` +
				`kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, Mbit/s, Gbit/s`},
		{"20 us", "-20 us", "f.yaml:4: networks.lan.latency: -20µs: there should be 0 to 1h0m0s"},
		{"20 us", "0.5 ns", "f.yaml:4: networks.lan.latency: 0.5 ns is not a whole number of nanoseconds"},
		{"20 us", "1e30 s", "f.yaml:4: networks.lan.latency: 1e30 s is out of range"},
		{"128 KiB", "1 kB", "f.yaml:4: networks.lan.queue: 1000 B: it should hold one frame of 1500 B at least, and " +
			"1099511627776 B at most"},
		{"mtu: 1500 B", "mtu: 1500", `f.yaml:4: networks.lan.mtu: 1500 has no unit; write a size with one, as "128 KiB"`},
		{"kind: ether", "kind: myrinet", `f.yaml:4: networks.lan.kind: "myrinet": there should be ether or ib`},
		{"kind: ether, ", "", "f.yaml:4: networks.lan.kind: it is missing"},
		{"1500 B}", "1500 B, loss: 120 %}",
			"f.yaml:4: networks.lan.loss: 120 %: there should be 0 % or more, and less than 100 %"},
		{"    network: lan\n    machines:\n", "    network: wan\n    machines:\n",
			`f.yaml:7: sites.here.network: "wan": there is no such network; there are lan`},
		{"class: pc\n", "class: mac\n",
			`f.yaml:9: sites.here.machines[0].class: "mac": there is no such class of machines; there are pc`},
		{"count: 4", "count: 0",
			"f.yaml:10: sites.here.machines[0].count: 0: leave the key out to have as many machines as are asked for"},
		{"count: 4", "count: 4.5", "f.yaml:10: sites.here.machines[0].count: there should be a whole number, not 4.5"},
		{"[{class: pc}]", "[]", "f.yaml:13: sites.there.machines: there is none; a site has one group of machines at least"},
		{"[here, there]", "[here, elsewhere]",
			`f.yaml:15: wide[0].between: "elsewhere": there is no such site; there are here, there`},
		{"[here, there]", "[here]", "f.yaml:15: wide[0].between: there should be 2 sites, not 1"},
		{"queue: 1 MiB", "queue: 100 B",
			"f.yaml:18: wide[0].queue: 100 B: it should hold one frame of 1500 B at least, and 1099511627776 B at most"},
		{"at: 1 s", "at: soon", `f.yaml:20: events[0].at: "soon" is not a time; write a number with a unit, as "20 us"`},
		{"    rank: 0\n", "", "f.yaml:20: events[0].rank: it is missing: give the rank of the machine"},
		{"lost: true", "lost: maybe", `f.yaml:22: events[0].lost: there should be true or false, not "maybe"`},
		{"lost: true", "slow: .nan", "f.yaml:22: events[0].slow: there should be a number, not .nan"},
		{"lost: true", "slow: 0",
			"f.yaml:22: events[0].slow: 0: there should be a factor of 1 or more; leave the key out where nothing is slower"},
		{"lost: true", "slow: 2\n    until: 0 s",
			"f.yaml:23: events[0].until: 0: it should come after at; leave the key out where the event is for good"},
		{"1 Gpoint/s}", "1 Gpoint/s, slow: 0.0}",
			"f.yaml:2: machines.pc.slow: 0: there should be a factor of 1 or more; leave the key out where nothing is slower"},
		{"1 Gpoint/s}", "1 Gpoint/s, slow: 1e9}",
			"f.yaml:2: machines.pc.slow: 1e+09: there should be a factor of 1 to 1e+06; faster machines are a class of " +
				"their own"},
		{"1 Gpoint/s}", "1 Gpoint/s, slow: 5 x}", `f.yaml:2: machines.pc.slow: there should be a number, not "5 x"`},
		{"1500 B}", "1500 B, backplane: 0 bit/s}",
			"f.yaml:4: networks.lan.backplane: 0: there should be 1 B/s or more; leave the key out where there is no bound"},
		{"1500 B}", "1500 B, shaper: {rate: 0 B/s, queue: 1 MiB}}",
			"f.yaml:4: networks.lan.shaper.rate: 0: there should be 1 B/s or more; leave shaper out where there is no bound"},
		{"1500 B}", "1500 B, shaper: {rate: 1 MB/s}}",
			"f.yaml:4: networks.lan.shaper.queue: it is missing: there should be a size, as \"128 KiB\""},
		{"1 Gbit/s, latency", "1 gbit/s, latency",
			`f.yaml:4: networks.lan.rate: unknown unit "gbit/s" (did you mean "Gbit/s"?); the units of a rate are B/s, ` +
				`kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, Mbit/s, Gbit/s`},
		{"lost: true", "until: 500 ms", "f.yaml:20: events[0]: there should be one of slow, lost, killed, cut and apart"},
		{"rank: 0\n    lost: true", "cut: []",
			"f.yaml:21: events[0].cut: there should be two sites, or one whose network is cut in halves"},
		{"wide:\n  - between: [here, there]\n    rate: 1 Gbit/s\n    latency: 5 ms\n    queue: 1 MiB\n", "",
			"f.yaml: wide: there is no line between here and there; every two sites need one"},
	} {
		require.Contains(t, small, c.old)
		_, err := Parse("f.yaml", []byte(strings.Replace(small, c.old, c.new, 1)))
		require.EqualError(t, err, c.want)
		var e *Error
		require.ErrorAs(t, err, &e)
	}
}

func TestMostMachines(t *testing.T) {
	f, err := Parse("f.yaml", []byte(strings.Replace(small, "[{class: pc}]", "[{class: pc, count: 2}]", 1)))
	require.NoError(t, err)
	require.Equal(t, 6, Explain(&f.Description).MostMachines)
	_, err = f.Model(7)
	require.EqualError(t, err,
		"f.yaml:5: sites: 7 machines are asked for, and the description has 6; leave out the count of a group to have as "+
			"many as are asked for")
}

// A value is written in some unit, and reads the same, to the last bit.
func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		m    measure
		v    float64
		want string
	}{
		{times(), 20000, "20 us"}, {times(), 1500, "1.5 us"}, {times(), 0.3, "0.3 ns"}, {times(), 0, "0 s"}, {times(), 1e15,
			"1000000 s"},
		{sizes(), 131072, "128 KiB"}, {sizes(), 1500, "1500 B"}, {sizes(), 64000, "64 kB"}, {sizes(), 1 << 40, "1024 GiB"},
		{rates(), 125e6, "1 Gbit/s"}, {rates(), 1e9, "1 GB/s"}, {rates(), 1, "1 B/s"},
		{relaxations(), 3.35e8, "335 Mpoint/s"}, {ratios(), 0.02, "2 %"}, {ratios(), 0.001, "0.1 %"}, {ratios(), 1e-9,
			"1e-7 %"}, {frequencies(), 0.5, "0.5 /s"},
	} {
		require.Equal(t, c.want, c.m.format(c.v))
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]func() measure{times, sizes, rates, relaxations, ratios, frequencies}).Draw(t, "measure")()
		v := rapid.OneOf(rapid.Float64Range(1e-200, 1e200), rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, 1<<53).Draw(t, "whole"))
		})).Draw(t, "value")
		got, err := m.parse(m.format(v))
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(v), math.Float64bits(got), m.format(v))
	})
}
