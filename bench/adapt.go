package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

const (
	adaptations = 200 // of a round
	adaptLimit  = 1.0 // milliseconds
	frontN      = "48"
)

// adapt measures what a change of mode costs that both ends of a session ask for, as
// at the boundaries of time steps, and what it does to a whole run in time steps.
func adapt(ctx context.Context, b *bench) error {
	if err := b.boundaries(ctx); err != nil {
		return err
	}
	return b.nonstationary(ctx)
}

// boundaries changes a session over loopback there and back.
func (b *bench) boundaries(ctx context.Context) error {
	nodes, err := pair(ctx)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return err
	}
	sockets, err := both(func(i int) (*driver.Socket, error) {
		return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{
			Name: "boundaries", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 32 << 10}},
		})
	})
	if err != nil {
		return err
	}
	modes := [...]microproto.Mode{microproto.ModeAsynchronous, microproto.ModeSynchronous}
	var calls, pauses []float64
	for range b.rounds {
		var took, paused []float64
		for i := range adaptations {
			begin := time.Now()
			if _, err := both(func(end int) (struct{}, error) { return struct{}{}, sockets[end].Adapt(ctx, modes[i%2]) }); err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds()*1e3)
			paused = append(paused, sockets[0].Info().LastPause.Seconds()*1e3)
		}
		calls = append(calls, over("", "", "", took).Value)
		pauses = append(pauses, over("", "", "", paused).Value)
	}
	b.report.add(over("adapt", "a change of mode that both ends ask for, over loopback", "ms", calls).lowAtMost(adaptLimit),
		over("adapt", "of which the session pauses", "ms", pauses))
	return nil
}

// nonstationary runs the travelling front in time steps, in turn: asynchronous with
// the channel reconfigured at each step, and never; and synchronous.
func (b *bench) nonstationary(ctx context.Context) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	variants := []struct{ name, scheme, reconfigure string }{
		{"asynchronous, reconfigured at each step", "async", "step"},
		{"asynchronous, never reconfigured", "async", "never"},
		{"synchronous", "sync", "step"},
	}
	seconds, sweeps := make([][]float64, len(variants)), make([][]float64, len(variants))
	for range min(b.rounds, 5) {
		for i, v := range variants {
			out, err := b.command(ctx, nil, bin, "solve", "front", "--n", frontN, "--peers", "2", "--threads", "1", "--tol", "1e-4",
				"--scheme", v.scheme, "--reconfigure", v.reconfigure, "--format", "json", "--log-level", "error")
			if err != nil {
				return err
			}
			var s solution
			if err := json.Unmarshal(out, &s); err != nil || s.Seconds <= 0 {
				return fmt.Errorf("obstacle solve front: %w in %.200s", err, out)
			}
			seconds[i], sweeps[i] = append(seconds[i], s.Seconds), append(sweeps[i], s.SequentialEquivalentSweeps)
		}
	}
	for i, v := range variants {
		b.report.add(over("adapt", "the front at "+frontN+"³ in 16 steps, two peers, "+v.name, "s", seconds[i]),
			over("adapt", "the front, "+v.name, "sweeps", sweeps[i]))
	}
	b.report.add(over("adapt", "the front, asynchronous: reconfigured / never", "ratio of times", ratios(seconds[0], seconds[1])))
	return nil
}
