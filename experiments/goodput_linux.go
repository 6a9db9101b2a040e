package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// The emulated link: 50 Mbit/s, a round trip of 20 ms, and a queue of one bandwidth-delay product.
// Losses occur in the direction of the data. Goodput is measured for flowTime after flowWarmUp, which
// is longer than slow start and its overshoot.
const (
	flowRate  = 50 * netlab.Mbit
	flowDelay = 10 * time.Millisecond
	flowQueue = 125_000

	flowWarmUp = 5 * time.Second
	flowTime   = 30 * time.Second
)

// contender is a kind of flow under comparison.
type contender struct {
	name  string
	plain bool // TCP without SACK, RACK and tail loss probes
	spec  flow.Spec
}

var (
	newReno = contender{"session, NewReno", false, flow.Spec{Mode: microproto.ModeSynchronous, Protected: true}}
	ccid2   = contender{"session, CCID 2", false, flow.Spec{Mode: microproto.ModeAsynchronous, Protected: true}}
	cubic   = contender{"session, CUBIC", false, flow.Spec{
		Mode: microproto.ModeSynchronous, Protected: true, Optional: []string{ctp.CUBICCongestionAvoidance},
	}}
	plainReno = contender{"TCP reno, no SACK, RACK, TLP", true, flow.Spec{Congestion: "reno"}}
	reno      = contender{"TCP reno", false, flow.Spec{Congestion: "reno"}}
	tcpCubic  = contender{"TCP cubic", false, flow.Spec{Congestion: "cubic"}}
)

// goodput measures the goodput of each contender alone at several loss rates.
func goodput(ctx context.Context, r *measure.Run) error {
	return emulated(r, func(late *punctuality) error { return goodputAlone(ctx, r, late, max(1, r.Rounds/3)) })
}

// emulated runs a measurement of minutes over emulated links, and adds how late the links were.
func emulated(r *measure.Run, of func(*punctuality) error) error {
	if err := netlab.UrgentLink.SetAll(); err != nil {
		return err
	}
	defer func() { _ = netlab.Ordinary.SetAll() }()
	var late punctuality
	if err := of(&late); err != nil {
		return err
	}
	r.Add(measure.Over("largest delay of a packet by the emulation, per link", "ms", late.worst).AsDetail(),
		measure.Over("packets more than 1 ms late, per link", "packets", late.often).AsDetail())
	return nil
}

// goodputAlone measures every contender on a link of its own.
func goodputAlone(ctx context.Context, r *measure.Run, late *punctuality, rounds int) error {
	all := []contender{newReno, plainReno, reno, cubic, tcpCubic, ccid2}
	for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
		got := make([][]float64, len(all))
		for round := range rounds {
			v, err := separately(ctx, late, netlab.Conditions{Loss: loss}, uint64(round), all)
			if err != nil {
				return err
			}
			for i := range v {
				got[i] = append(got[i], v[i])
			}
		}
		for i, c := range all {
			m := measure.Over(fmt.Sprintf("%s, %g %% lost", c.name, 100*loss), "Mbit/s", got[i])
			switch {
			case i > 0 && c.spec.Congestion != "":
				continue // a peer of the sessions
			case i == 0 && loss == 0:
				m = m.AtLeast(0.85 * flowRate / netlab.Mbit)
			case i == 0:
				name := fmt.Sprintf("NewReno / %s, %g %% lost, mean of the rounds", plainReno.name, 100*loss)
				r.Add(measure.One(name, "ratio", floats.Sum(got[0])/floats.Sum(got[1])).Between(0.75, 1.25))
			}
			r.Add(m.Against(plainReno.name, got[1]).Against(reno.name, got[2]).Against(tcpCubic.name, got[4]))
		}
	}
	return nil
}

// punctuality collects how late the emulated links were.
type punctuality struct {
	mu           sync.Mutex
	worst, often []float64
}

func (p *punctuality) add(l netlab.Lateness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worst = append(p.worst, float64(l.Worst)/float64(time.Millisecond))
	p.often = append(p.often, float64(l.Often))
}

// separately measures contenders, each on a link of its own, in Mbit/s. They run at the same time,
// but one by one without losses, when fast flows would compete for the processors.
func separately(
	ctx context.Context, late *punctuality, forth netlab.Conditions, seed uint64, all []contender,
) ([]float64, error) {
	out, errs := make([]float64, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			var v []float64
			if v, errs[i] = flows(ctx, late, forth, seed, all[i]); errs[i] == nil {
				out[i] = v[0]
			}
		})
		if forth.Loss == 0 {
			running.Wait()
		}
	}
	running.Wait()
	return out, errors.Join(errs...)
}

// flows runs flows over one link and returns the goodput of each, in Mbit/s. The link has the loss and the jitter of
// forth in the direction of the data.
func flows(
	ctx context.Context, late *punctuality, forth netlab.Conditions, seed uint64, all ...contender,
) (out []float64, err error) {
	err = measure.InLab(func(r netlab.Reporter) error {
		l := netlab.New(r)
		h1, h2 := l.Host("a"), l.Host("b")
		c := netlab.Conditions{Rate: flowRate, QueueBytes: flowQueue, Delay: flowDelay}
		e := netlab.Emulation{Forth: c, Back: c, Seed: seed, Urgent: true}
		e.Forth.Loss, e.Forth.Jitter = forth.Loss, forth.Jitter
		link := l.Emulate(h1, h2, e)
		var running []*flow.Flow
		defer func() {
			for _, f := range running {
				_, _, _ = f.Stop() // after an error
			}
		}()
		for _, c := range all {
			tune := flow.DefaultTCP
			if c.plain {
				tune = flow.PlainTCP
			}
			if err := errors.Join(tune(h1), tune(h2)); err != nil {
				return err
			}
			f, err := flow.Start(link.A, link.B, c.spec)
			if err != nil {
				return err
			}
			running = append(running, f)
		}
		for _, f := range running {
			if err := f.Bulk(); err != nil {
				return err
			}
		}
		begin := flow.Now()
		if err := pause(ctx, flowWarmUp+flowTime); err != nil {
			return err
		}
		from := begin + int64(flowWarmUp)
		for _, f := range running {
			out = append(out, f.Goodput(from, from+int64(flowTime))/netlab.Mbit)
			if _, _, err := f.Stop(); err != nil {
				return err
			}
		}
		running = nil
		late.add(link.Lateness())
		return nil
	})
	return out, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
