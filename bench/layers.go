package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// The layers of a session over UDP, from the bottom. Each is a program of both ends.
func layerKinds(asleep bool) []string {
	if asleep {
		return []string{kindLink + asleepSuffix, kindComposite + asleepSuffix, kindOurs + asleepSuffix}
	}
	return []string{kindDatagrams, kindLink, kindComposite, kindOurs}
}

// layers measures one way trips through the layers of a synchronous session, each with all layers below it: the
// kernel's socket, for messages of one datagram, the link, the composite above it, and node, driver and Socket above
// that. The cost of a layer is the difference to the one before. It also counts how often a process of the session
// sleeps in a trip. Short messages are measured beside two busy loops, too.
func layers(ctx context.Context, r *measure.Run) error {
	h := loopback()
	defer h.close()
	for _, busy := range []bool{false, true} {
		for _, asleep := range []bool{false, true} {
			if err := waterfall(ctx, r, h, asleep, busy); err != nil {
				return err
			}
		}
	}
	return nil
}

// busyLoops starts processes that compute without pause, and returns what ends them.
func busyLoops(ctx context.Context, count int) (stop func(), err error) {
	ctx, stop = context.WithCancel(ctx)
	for range count {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			return stop, fmt.Errorf("busy loop: %w", err)
		}
	}
	return stop, nil
}

var layerNames = map[string]string{
	kindDatagrams: "socket",
	kindLink:      "link", kindComposite: "composite", kindOurs: "session", kindTCP: "TCP in Go, reno",
	kindLink + asleepSuffix: "link", kindComposite + asleepSuffix: "composite", kindOurs + asleepSuffix: "session",
}

// waterfall does the exchanges with every layer, once a round.
func waterfall(ctx context.Context, r *measure.Run, h hosts, asleep, busy bool) error {
	kinds, how := append(layerKinds(asleep), kindTCP), "polling"
	if asleep {
		how = "asleep"
	}
	counts := []int{2000, 1500, 800, 150}
	sizes := []exchange{
		latency("8 B", 8, counts[0], 0), latency("8 KB", 8<<10, counts[1], 0), latency("64 KB", 64<<10, counts[2], 0),
		latency("512 KB", 512<<10, counts[3], 0),
	}
	if busy {
		stop, err := busyLoops(ctx, 2)
		defer stop()
		if err != nil {
			return err
		}
		how, sizes = how+", beside two busy loops", sizes[:1]
	}
	slept := make([][]float64, len(sizes))
	var all []*contender
	for _, kind := range kinds {
		p, err := ownTransport(kind, layerNames[kind]).open(ctx, r, h)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		defer p.close()
		all = append(all, &contender{
			kind: kind, name: layerNames[kind], pair: p, values: make([][]float64, len(sizes)), lost: make([]int, len(sizes)),
		})
	}
	for round := range r.Repeat(r.Rounds + 1) {
		for i := range sizes {
			for _, c := range all {
				// The other sizes do not fit a datagram.
				if c.failed == nil && (c.kind != kindDatagrams || i < 2) {
					leader := c.exchange(&sizes[i], i, round > 0)
					if c == all[len(all)-2] && round > 0 && c.failed == nil {
						slept[i] = append(slept[i], leader.Sleeps/float64(2*counts[i]))
					}
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i := range sizes {
		session := all[len(all)-2]
		m := measure.Over(fmt.Sprintf("%s, %s", sizes[i].name, how), "µs", session.values[i])
		for _, c := range all {
			if c != session && len(c.values[i]) > 0 {
				m = m.Against(c.name, c.values[i])
			}
		}
		about := fmt.Sprintf("%s, %s: sleeps of a process", sizes[i].name, how)
		r.Add(m, measure.Over(about, "a trip", slept[i]).AsDetail())
	}
	for _, c := range all {
		if c.failed != nil {
			r.Skip(c.name+", "+how, c.failed)
		}
	}
	return nil
}
