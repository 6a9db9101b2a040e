package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// The link of these measurements: 50 Mbit/s, 20 ms there and back, a queue that holds
// what is under way then. What is lost is lost on the way forth.
const (
	labRate  = 50 * netlab.Mbit
	labDelay = 10 * time.Millisecond
	labQueue = 125_000

	labWarm = 5 * time.Second // slow start and what it has overshot are over
	labTime = 30 * time.Second
)

// contender is a kind of flow that is measured.
type contender struct {
	name  string
	plain bool // TCP without SACK, RACK and tail loss probes
	spec  flow.Spec
}

func contenders() (newReno, ccid2, cubic, reno, renoDefault, cubicDefault contender) {
	newReno = contender{"session, NewReno", false, flow.Spec{Mode: microproto.ModeSynchronous, Protected: true}}
	ccid2 = contender{"session, CCID 2", false, flow.Spec{Mode: microproto.ModeAsynchronous, Protected: true}}
	cubic = contender{"session, CUBIC", false, flow.Spec{Mode: microproto.ModeSynchronous, Protected: true, Optional: []string{ctp.CUBICCongestionAvoidance}}}
	reno = contender{"TCP reno, no SACK, RACK, TLP", true, flow.Spec{Congestion: "reno"}}
	renoDefault = contender{"TCP reno as it is", false, flow.Spec{Congestion: "reno"}}
	cubicDefault = contender{"TCP cubic as it is", false, flow.Spec{Congestion: "cubic"}}
	return
}

// goodputs measures goodput at several rates of loss, each contender alone on a link like
// the others', and what two get of a link that they share.
func goodputs(ctx context.Context, b *bench) error {
	newReno, ccid2, cubic, reno, renoDefault, cubicDefault := contenders()
	rounds := max(1, b.rounds/3) // they are long
	if err := netlab.UrgentLink.SetAll(); err != nil {
		return err
	}
	defer func() { _ = netlab.Ordinary.SetAll() }()
	var late punctuality
	alone := []contender{newReno, reno, renoDefault, cubic, cubicDefault, ccid2}
	for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
		got := make([][]float64, len(alone))
		for round := range rounds {
			v, err := apart(ctx, &late, loss, uint64(round), alone)
			if err != nil {
				return err
			}
			for i := range v {
				got[i] = append(got[i], v[i])
			}
		}
		for i, c := range alone {
			m := over("lab", fmt.Sprintf("%s, %g %% lost", c.name, 100*loss), "Mbit/s", got[i])
			if loss == 0 && i == 0 {
				m = m.atLeast(0.85 * labRate / netlab.Mbit)
			}
			b.report.add(m)
		}
		if loss > 0 {
			m := over("lab", fmt.Sprintf("NewReno against reno, %g %% lost, mean of the rounds", 100*loss), "ratio", []float64{sum(got[0]) / sum(got[1])})
			b.report.add(m.between(0.75, 1.25))
		}
	}
	for _, pair := range []struct {
		a, b      contender
		low, high float64
	}{
		{newReno, reno, 0.67, 1.5}, {newReno, renoDefault, 0.67, 1.5}, {ccid2, renoDefault, 0.5, 2}, {reno, reno, 0, 0}, {renoDefault, renoDefault, 0, 0},
	} {
		var ratios, fairness, used []float64
		for round := range rounds {
			v, err := together(ctx, &late, uint64(round), pair.a, pair.b)
			if err != nil {
				return err
			}
			ratios = append(ratios, v[0]/v[1])
			fairness = append(fairness, jain(v))
			used = append(used, 100*(v[0]+v[1])*netlab.Mbit/labRate)
		}
		name := fmt.Sprintf("%s beside %s", pair.a.name, pair.b.name)
		share, fair := over("lab", name+": share", "ratio", ratios), over("lab", name+": Jain's index", "", fairness)
		fair.Unit = "of 1"
		if pair.high > 0 {
			share = share.between(pair.low, pair.high)
		}
		if pair.high == 1.5 {
			fair = fair.atLeast(0.95)
		}
		b.report.add(share, fair, over("lab", name+": both together", "% of the link", used))
	}
	b.report.add(over("lab", "worst lateness of a packet, by link", "ms", late.worst),
		over("lab", "packets more than 1 ms late, by link", "times", late.often))
	return nil
}

// punctuality collects what the links say of themselves.
type punctuality struct {
	mu           sync.Mutex
	worst, often []float64
}

func (p *punctuality) note(l netlab.Lateness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worst, p.often = append(p.worst, float64(l.Worst)/float64(time.Millisecond)), append(p.often, float64(l.Often))
}

// apart measures contenders at the same time, each on a link of its own: Mbit/s.
func apart(ctx context.Context, late *punctuality, loss float64, seed uint64, all []contender) ([]float64, error) {
	out, errs := make([]float64, len(all)), make([]error, len(all))
	var g sync.WaitGroup
	step := len(all)
	if loss == 0 {
		step = 1 // fast ones would take the processors from each other
	}
	for part := range slices.Chunk(slices.Collect(counting(len(all))), step) {
		for _, i := range part {
			g.Go(func() {
				var v []float64
				if v, errs[i] = flows(ctx, late, loss, seed, all[i]); errs[i] == nil {
					out[i] = v[0]
				}
			})
		}
		g.Wait()
	}
	return out, errors.Join(errs...)
}

func counting(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// together measures two on one link.
func together(ctx context.Context, late *punctuality, seed uint64, a, b contender) ([]float64, error) {
	return flows(ctx, late, 0, seed, a, b)
}

// flows runs flows over one link and gives the goodput of each, in Mbit/s.
func flows(ctx context.Context, late *punctuality, loss float64, seed uint64, all ...contender) (out []float64, err error) {
	err = inLab(func(r netlab.Reporter) error {
		l := netlab.New(r)
		h1, h2 := l.Host("a"), l.Host("b")
		c := netlab.Conditions{Rate: labRate, QueueBytes: labQueue, Delay: labDelay}
		e := netlab.Emulation{Forth: c, Back: c, Seed: seed}
		e.Forth.Loss = loss
		link := l.Emulate(h1, h2, e)
		var running []*flow.Flow
		defer func() {
			for _, f := range running {
				_, _, _ = f.Stop() // a second time, after an error
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
		if err := pause(ctx, labWarm+labTime); err != nil {
			return err
		}
		from := begin + int64(labWarm)
		for _, f := range running {
			out = append(out, f.Goodput(from, from+int64(labTime))/netlab.Mbit)
			if _, _, err := f.Stop(); err != nil {
				return err
			}
		}
		running = nil
		late.note(link.Lateness())
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

// jain is the index of fairness of Jain, Chiu and Hawe: 1 when all get the same.
func jain(v []float64) float64 {
	var s, squares float64
	for _, x := range v {
		s += x
		squares += x * x
	}
	return s * s / (float64(len(v)) * squares)
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// inLab runs f with a lab's reporter, and takes the lab down.
func inLab(f func(r netlab.Reporter) error) (err error) {
	tb := &labTB{}
	defer tb.close()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f(tb)
}

// flowEnd does its part in a process that is a flow's end.
func flowEnd() { flow.Main() }
