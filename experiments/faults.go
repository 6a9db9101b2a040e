package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A fault changes the model of a cluster.
type fault struct {
	name    string
	cluster string // "": graphene-eth
	inject  func(*cluster.Model)
}

// faultRate is the rate of every line in these experiments, bytes a second. At 1 Gbit/s faces of
// this size would fill it, and the line would be what is measured.
const faultRate = 1.25e9

// faultList returns the faults of mapMachines machines. Runs take a second or two of virtual time.
func faultList() []fault {
	return []fault{
		{name: "no fault", inject: func(*cluster.Model) {}},
		{name: "one machine 5 times slower", inject: func(m *cluster.Model) { m.Hosts[mapMachines/2].Slow = 5 }},
		{name: "pauses of 100 ms, each machine every 5 s on average", inject: func(m *cluster.Model) {
			for i := range m.Hosts {
				m.Hosts[i].Straggle = cluster.Straggle{PerSecond: 0.2, For: 100 * time.Millisecond}
			}
		}},
		{name: "1 % of the frames lost", inject: func(m *cluster.Model) { m.Networks[0].Loss = 0.01 }},
		{name: "cut in halves from 0.2 s to 0.7 s", inject: func(m *cluster.Model) {
			m.Events = []cluster.Event{
				{At: 200 * time.Millisecond, Until: 700 * time.Millisecond, Cut: [2]string{m.Sites[0], ""}},
			}
		}},
		{name: "two sites, round trip 18 ms", cluster: "grid-18ms", inject: func(*cluster.Model) {}},
	}
}

// sample returns a run with the fault.
func (f *fault) sample(s iterate.Scheme, seed uint64) measure.Sample {
	out := measure.Sample{
		Cluster: cmp.Or(f.cluster, "graphene-eth"), Machines: mapMachines, Side: 12, Scale: 21, Scheme: s, Seed: seed,
	}
	out.Change = func(m *cluster.Model) {
		for i := range m.Networks {
			m.Networks[i].Rate, m.Networks[i].Queue = faultRate, 4<<20
		}
		for i := range m.WAN {
			m.WAN[i].Rate, m.WAN[i].Queue = faultRate, 64<<20
		}
		f.inject(m)
	}
	return out
}

// schemes returns the schemes to compare: also hybrid where there are several sites.
func (f *fault) schemes() ([]iterate.Scheme, error) {
	out := []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()}
	s := f.sample(nil, 0)
	m, err := s.Model()
	if err != nil {
		return nil, err
	}
	if len(m.Sites) > 1 {
		var sites []int
		for i := range m.Hosts {
			sites = append(sites, m.Hosts[i].Site)
		}
		out = append(out, iterate.Hybrid(sites))
	}
	return out, nil
}

// faults simulates every fault, and the loss of a machine.
func faults(ctx context.Context, r *measure.Run) error {
	list := faultList()
	results := make([][]measure.Result, len(list))
	err := measure.Each(ctx, len(list), func(ctx context.Context, i int) (err error) {
		results[i], err = list[i].run(ctx, min(r.Rounds, 3))
		return err
	})
	if err != nil {
		return err
	}
	for _, lines := range results {
		r.Add(lines...)
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		after, err := loseMachine(ctx, s)
		if err != nil {
			return err
		}
		name := "a machine lost, until the run ends with the error that names it: " + s.Name()
		r.Add(measure.One(name, "s", after).AtMost(12))
	}
	return nil
}

// run simulates the fault under every scheme with so many seeds.
func (f *fault) run(ctx context.Context, seeds int) (out []measure.Result, err error) {
	schemes, err := f.schemes()
	if err != nil {
		return nil, err
	}
	var sync []float64
	for i, scheme := range schemes {
		var seconds []float64
		for seed := range seeds {
			s := f.sample(scheme, uint64(seed))
			r, err := s.Play(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			seconds = append(seconds, r.Met.After.Seconds())
		}
		line := measure.Over(f.name+": "+scheme.Name(), "s", seconds)
		if i == 0 {
			sync = seconds
		} else {
			line = line.Against("sync", sync)
		}
		out = append(out, line)
	}
	return out, nil
}

// lostRank is the machine that loseMachine loses.
const lostRank = 5

// loseMachine returns the virtual seconds from the loss of a machine to the end of the run. Machines
// relax slowly, so that few sweeps are simulated until a peer gives up waiting.
func loseMachine(ctx context.Context, scheme iterate.Scheme) (seconds float64, err error) {
	const at = 100 * time.Millisecond
	s := measure.Sample{Cluster: "graphene-eth", Machines: 8, Side: 8, Scale: 32, Scheme: scheme, Sweeps: 1 << 30}
	s.Change = func(m *cluster.Model) {
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 8e7
		}
		m.Events = []cluster.Event{{At: at, Rank: lostRank, Lost: true}}
	}
	r, err := s.Play(ctx)
	var lost *p2psap.PeerLostError
	if !errors.As(err, &lost) || lost.Peer != fmt.Sprintf("peer%d", lostRank) {
		return 0, fmt.Errorf("machine %d was lost; want a PeerLostError that names it, got %v", lostRank, err)
	}
	return (r.Virtual - at).Seconds(), nil
}
