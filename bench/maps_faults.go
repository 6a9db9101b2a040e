package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A mishap is what happens to a cluster.
type mishap struct {
	name    string
	cluster string // "": graphene-eth
	befalls func(*cluster.Model)
}

// faultLine is the rate of a machine's line in these experiments, bytes a second: at 1 Gb/s
// the faces of this size fill it, and what is measured is the line.
const faultLine = 1.25e9

// mishaps of the mapMachines machines. Times are those of a run of a second or two.
func mishaps() []mishap {
	return []mishap{
		{name: "all is well", befalls: func(*cluster.Model) {}},
		{name: "one machine 5 times slower", befalls: func(m *cluster.Model) { m.Hosts[mapMachines/2].Slow = 5 }},
		{name: "pauses of 100 ms, each machine every 5 s on average", befalls: func(m *cluster.Model) {
			for i := range m.Hosts {
				m.Hosts[i].Straggle = cluster.Straggle{PerSecond: 0.2, For: 100 * time.Millisecond}
			}
		}},
		{name: "1 % of the frames lost", befalls: func(m *cluster.Model) { m.Networks[0].Loss = 0.01 }},
		{name: "cut in halves from 0.2 s to 0.7 s", befalls: func(m *cluster.Model) {
			m.Events = []cluster.Event{{At: 200 * time.Millisecond, Until: 700 * time.Millisecond, Cut: [2]string{m.Sites[0], ""}}}
		}},
		{name: "two sites, round trip 18 ms", cluster: "grid-18ms", befalls: func(*cluster.Model) {}},
	}
}

// trial plays a mishap under a scheme.
func (h *mishap) trial(s iterate.Scheme, seed uint64) trial {
	t := trial{cluster: h.cluster, machines: mapMachines, side: 12, standing: 21, scheme: s, seed: seed}
	if t.cluster == "" {
		t.cluster = "graphene-eth"
	}
	t.change = func(m *cluster.Model) {
		for i := range m.Networks {
			m.Networks[i].Rate, m.Networks[i].Queue = faultLine, 4<<20
		}
		for i := range m.WAN {
			m.WAN[i].Rate, m.WAN[i].Queue = faultLine, 64<<20
		}
		h.befalls(m)
	}
	return t
}

// schemesOf a mishap: hybrid where there are sites.
func (h *mishap) schemes() ([]iterate.Scheme, error) {
	out := []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()}
	t := h.trial(nil, 0)
	m, err := t.model()
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

// faults plays the mishaps, and the loss of a machine.
func (b *bench) faults(ctx context.Context) error {
	list := mishaps()
	rounds := min(b.rounds, 3)
	times := make([][][]float64, len(list)) // by mishap, scheme, seed
	names := make([][]string, len(list))
	err := each(ctx, len(list), func(ctx context.Context, i int) error {
		schemes, err := list[i].schemes()
		if err != nil {
			return err
		}
		for _, s := range schemes {
			var seconds []float64
			for seed := range rounds {
				t := list[i].trial(s, uint64(seed))
				r, err := t.play(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", list[i].name, err)
				}
				seconds = append(seconds, r.Met.After.Seconds())
			}
			times[i], names[i] = append(times[i], seconds), append(names[i], s.Name())
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, h := range list {
		for s, seconds := range times[i] {
			b.report.add(over("map", h.name+": "+names[i][s], "s", seconds))
			if s > 0 {
				b.report.add(over("map", h.name+": sync / "+names[i][s], "ratio", ratios(times[i][0], seconds)))
			}
		}
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		after, err := lose(ctx, s)
		if err != nil {
			return err
		}
		b.report.add(over("map", "a machine lost: "+s.Name()+", until the run has ended with the error that names it", "s", []float64{after}).atMost(12))
	}
	return nil
}

// lostRank falls silent in lose.
const lostRank = 5

// lose is how long a run goes on that loses a machine, in virtual seconds. Machines relax
// slowly, so that there is little to play until somebody gives up waiting.
func lose(ctx context.Context, s iterate.Scheme) (seconds float64, err error) {
	const at = 100 * time.Millisecond
	t := trial{cluster: "graphene-eth", machines: 8, side: 8, standing: 32, scheme: s, sweeps: 1 << 30}
	t.change = func(m *cluster.Model) {
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 8e7
		}
		m.Events = []cluster.Event{{At: at, Rank: lostRank, Lost: true}}
	}
	r, err := t.play(ctx)
	var lost *p2psap.PeerLostError
	if !errors.As(err, &lost) || lost.Peer != fmt.Sprintf("peer%d", lostRank) {
		return 0, fmt.Errorf("machine %d was lost, and the run says: %w", lostRank, errors.Join(err, errors.New("that is not what was to be said")))
	}
	return (r.Virtual - at).Seconds(), nil
}
