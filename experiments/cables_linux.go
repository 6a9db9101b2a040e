package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
)

// Of two cables between two hosts one is pulled, in turn, cablePulls times. Both have cableRest to be known to work
// again.
const (
	cablePulls = 20
	cableRest  = 2 * time.Second
	// A pause begins with the pull, or with the last message before.
	pauseAfterCarrier = 0.020 // s, where the interface loses its carrier
	pauseWhenSilent   = 1.5   // s, where frames vanish
)

// cables measures how long sessions pause. An end of a flow fails if a message is lost, comes twice or out of order.
func cables(ctx context.Context, r *measure.Run) error {
	if err := netlab.UrgentLink.SetAll(); err != nil {
		return err
	}
	defer func() { _ = netlab.Ordinary.SetAll() }()
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, silent := range []bool{false, true} {
			name, limit := fmt.Sprintf("%v session, a cable is pulled: longest pause of each", mode), pauseAfterCarrier
			if silent {
				name, limit = fmt.Sprintf("%v session, a cable falls silent: longest pause of each", mode), pauseWhenSilent
			}
			var pauses []float64
			err := measure.InLab(func(tb netlab.Reporter) (err error) {
				pauses, err = pullCables(ctx, tb, mode, silent)
				return err
			})
			if err != nil {
				return err
			}
			worst := 0.0
			for _, p := range pauses {
				worst = max(worst, p)
			}
			fmt.Fprintf(r.Log(), "%s: %.4f\n", name, pauses)
			result := measure.Over(name, "s", pauses)
			result.Value = worst
			r.Add(result.AtMost(limit))
		}
	}
	return nil
}

// cable is one of two between the hosts.
type cable struct {
	near, far netlab.End
	set       func(down bool) error
}

func newCable(lab *netlab.Lab, a, b *netlab.Host, silent bool) cable {
	if !silent {
		near, far := lab.Join(a, b, netlab.Wire{})
		return cable{near, far, func(down bool) error {
			if down {
				return far.Cut()
			}
			return far.Restore()
		}}
	}
	var up netlab.Conditions
	k := lab.Emulate(a, b, netlab.Emulation{Forth: up, Back: up, Urgent: true})
	return cable{k.A, k.B, func(down bool) error {
		c := up
		c.Down = down
		if err := k.Change(netlab.Forth, c); err != nil {
			return err
		}
		return k.Change(netlab.Back, c)
	}}
}

// pullCables returns the longest pause after each pull, in seconds.
func pullCables(ctx context.Context, tb netlab.Reporter, mode microproto.Mode, silent bool) ([]float64, error) {
	lab := netlab.New(tb)
	a, b := lab.Host("a"), lab.Host("b")
	all := [2]cable{newCable(lab, a, b, silent), newCable(lab, a, b, silent)}
	f, err := flow.Start(all[0].near, all[0].far, flow.Spec{
		Mode: mode, Intra: true, Protected: true, Everywhere: true, Bytes: 4096, Interval: time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := f.Bulk(); err != nil {
		return nil, err
	}
	var pulls []int64
	for i := range cablePulls {
		if err := pause(ctx, cableRest); err != nil {
			return nil, err
		}
		pulls = append(pulls, flow.Now())
		if err := all[i%2].set(true); err != nil {
			return nil, err
		}
		if err := pause(ctx, cableRest); err != nil {
			return nil, err
		}
		if err := all[i%2].set(false); err != nil {
			return nil, err
		}
	}
	_, received, err := f.Stop()
	pauses := make([]float64, len(pulls))
	for i, at := range pulls {
		for _, g := range received.Gaps {
			if g.To >= at && g.From < at+int64(cableRest) {
				pauses[i] = max(pauses[i], float64(g.To-max(g.From, at))/1e9)
			}
		}
	}
	return pauses, err
}
