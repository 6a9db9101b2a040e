package main

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
)

// flowJitter is the largest additional delay of a packet on a shared link: the time in which the link transmits four
// packets. Without it, the packets of a flow arrive at a full queue always just before or always just after the end of
// a transmission, so that one of two flows loses nearly all packets. Such phase effects are those of exact links, not of
// networks (Floyd and Jacobson, On Traffic Phase Effects in Packet-Switched Gateways, 1992, §3), who propose a random
// delay of at least the transmission time of a packet.
const flowJitter = time.Millisecond

// shares measures what two contenders get of one link.
func shares(ctx context.Context, r *measure.Run) error {
	return emulated(r, func(late *punctuality) error {
		for _, p := range []pair{
			{newReno, plainReno, flowJitter, 0.67, 1.5}, {newReno, reno, flowJitter, 0.67, 1.5},
			{cubic, tcpCubic, flowJitter, 0.67, 1.5}, {ccid2, reno, flowJitter, 0.5, 2},
			{reno, reno, flowJitter, 0, 0}, {tcpCubic, tcpCubic, flowJitter, 0, 0}, {reno, tcpCubic, flowJitter, 0, 0},
			{newReno, reno, 0, 0, 0}, {cubic, tcpCubic, 0, 0, 0},
		} {
			if err := p.measure(ctx, r, late); err != nil {
				return err
			}
		}
		return nil
	})
}

// pair is two contenders on one link.
type pair struct {
	a, b      contender
	jitter    time.Duration
	low, high float64 // target of the share of a by that of b; 0: none
}

func (p *pair) measure(ctx context.Context, r *measure.Run, late *punctuality) error {
	var shares, fairness, used []float64
	for round := range (r.Rounds + 1) / 2 { // of most of a minute
		v, err := flows(ctx, late, netlab.Conditions{Jitter: p.jitter}, uint64(round), p.a, p.b)
		if err != nil {
			return err
		}
		shares, fairness = append(shares, v[0]/v[1]), append(fairness, jain(v))
		used = append(used, 100*(v[0]+v[1])*netlab.Mbit/flowRate)
	}
	name := fmt.Sprintf("%s beside %s", p.a.name, p.b.name)
	if p.jitter == 0 {
		name += ", without jitter"
	}
	share, fair := measure.Over(name+": share", "ratio", shares), measure.Over(name+": Jain's index", "of 1", fairness)
	if p.high > 0 {
		share = share.Between(p.low, p.high)
	}
	if p.high == 1.5 {
		fair = fair.AtLeast(0.95)
	}
	r.Add(share, fair, measure.Over(name+": both", "% of the link", used).AsDetail())
	return nil
}

// jain returns the fairness index of Jain, Chiu and Hawe: 1 if all are equal.
func jain(v []float64) float64 {
	sum := floats.Sum(v)
	return sum * sum / (float64(len(v)) * floats.Dot(v, v))
}
