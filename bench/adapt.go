package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

const (
	modeChanges = 200 // of a round
	changeLimit = 1.0 // milliseconds
	frontN      = "48"
)

// adapt measures a change of mode that both ends of a session request, as at the boundary of a time
// step, and its cost to a whole run in time steps.
func adapt(ctx context.Context, r *measure.Run) error {
	if err := changeModes(ctx, r); err != nil {
		return err
	}
	return stepModes(ctx, r)
}

// changeModes changes a session over loopback to the other mode and back.
func changeModes(ctx context.Context, r *measure.Run) error {
	nodes, err := connectedNodes(ctx)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return err
	}
	sockets, err := both(func(i int) (*driver.Socket, error) {
		return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{
			Name: "modes", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 32 << 10}},
		})
	})
	if err != nil {
		return err
	}
	modes := [...]microproto.Mode{microproto.ModeAsynchronous, microproto.ModeSynchronous}
	var calls, pauses []float64
	for range r.Repeat(r.Rounds) {
		var call, pause []float64
		for i := range modeChanges {
			begin := time.Now()
			_, err := both(func(end int) (struct{}, error) {
				return struct{}{}, sockets[end].Adapt(ctx, modes[i%2])
			})
			if err != nil {
				return err
			}
			call = append(call, time.Since(begin).Seconds()*1e3)
			pause = append(pause, sockets[0].Info().LastPause.Seconds()*1e3)
		}
		calls, pauses = append(calls, measure.Median(call)), append(pauses, measure.Median(pause))
	}
	r.Add(measure.Over("a change of mode that both ends request, over loopback", "ms", calls).BestAtMost(changeLimit),
		measure.Over("of which the session pauses", "ms", pauses))
	return nil
}

// stepModes runs the travelling front in time steps: asynchronous with the channel reconfigured at
// each step and never, and synchronous.
func stepModes(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	variants := []struct{ name, scheme, stepMode string }{
		{"asynchronous, never reconfigured", "async", "never"},
		{"asynchronous, reconfigured at each step", "async", "step"},
		{"synchronous", "sync", "step"},
	}
	seconds, sweeps := make([][]float64, len(variants)), make([][]float64, len(variants))
	for range r.Repeat(min(r.Rounds, 5)) {
		for i, v := range variants {
			s, err := measure.Obstacle(ctx, program, "solve", "front", "--n", frontN, "--peers", "2", "--threads", "1",
				"--tol", "1e-4", "--method", "richardson", "--scheme", v.scheme, "--step-mode", v.stepMode, "--network", "ether")
			if err != nil {
				return err
			}
			if !s.Converged {
				return fmt.Errorf("the front, %s: the run did not converge", v.name)
			}
			seconds[i], sweeps[i] = append(seconds[i], s.Seconds), append(sweeps[i], s.Sweeps)
		}
	}
	for i, v := range variants {
		m := measure.Over("the front at "+frontN+"³ in 16 steps, two peers, "+v.name, "s", seconds[i])
		if i > 0 {
			m = m.Against(variants[0].name, seconds[0])
		}
		r.Add(m, measure.Over("the front, "+v.name, "sweeps", sweeps[i]))
	}
	return nil
}
