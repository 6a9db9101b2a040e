package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
)

// exchange is one figure of the comparison: the command to both ends, what is taken from their
// answers, and the target of ours.
type exchange struct {
	name, unit string
	command    string
	value      func(leader, other twonode.Answer) float64
	target     func(m measure.Result) measure.Result
	async      bool // for asynchronous sessions alone; otherwise for all transports but these
	plain      bool // also by plain datagrams: a system call for each message, the limit of the machine
}

// applies reports whether a kind of transport does the exchange.
func (e *exchange) applies(kind string) bool {
	switch kind {
	case kindDatagrams:
		return e.plain
	case kindAsync:
		return e.async
	}
	return !e.async
}

const microsecond = 1e3 // in nanoseconds

// latency is the exchange of a message of so many bytes, count times.
func latency(name string, bytes, count int, most float64) exchange {
	return exchange{
		name: "one way, " + name, unit: "µs", command: fmt.Sprintf("%s %d %d", twonode.Latency, bytes, count),
		value:  func(l, _ twonode.Answer) float64 { return l.Least / microsecond },
		target: func(m measure.Result) measure.Result { return m.BestAtMost(most) }, plain: bytes == 8,
	}
}

// Messages of a stream: of 64 KB, of 64 KB at 1 GB/s, of 8 bytes.
const streamMessages, pacedMessages, smallMessages, pacedRate = 3000, 2000, 100000, 1e9

func largeStream() exchange {
	return exchange{
		name: "64 KB messages", unit: "GB/s", command: fmt.Sprintf("%s %d %d", twonode.Stream, 64<<10, streamMessages),
		value:  func(l, _ twonode.Answer) float64 { return streamMessages * (64 << 10) / l.Elapsed },
		target: func(m measure.Result) measure.Result { return m.BestAtLeast(4.5) },
	}
}

func smallStream() exchange {
	return exchange{
		name: "8 B messages", unit: "million/s", command: fmt.Sprintf("%s %d %d", twonode.Stream, 8, smallMessages),
		value:  func(l, _ twonode.Answer) float64 { return smallMessages / l.Elapsed * 1e3 },
		target: func(m measure.Result) measure.Result { return m.BestAtLeast(1.5) },
	}
}

// exchanges returns all of them. Each is short, so that those of all transports lie close together.
func exchanges() []exchange {
	out := []exchange{
		latency("8 B", 8, 2000, 4), latency("8 KB", 8<<10, 1500, 5), latency("64 KB", 64<<10, 800, 10),
		latency("512 KB", 512<<10, 150, 50), largeStream(), smallStream(),
	}
	for i, end := range []string{"sender", "receiver"} {
		out = append(out, exchange{
			name: "processor of the " + end + " at 1 GB/s", unit: "cores",
			command: fmt.Sprintf("%s %d %d %d", twonode.Stream, 64<<10, pacedMessages, int(pacedRate)),
			// By the byte: a transport that cannot carry 1 GB/s takes longer.
			value: func(l, o twonode.Answer) float64 {
				return [2]twonode.Answer{l, o}[i].Processor / (pacedMessages * (64 << 10) / pacedRate * 1e9)
			},
			target: func(m measure.Result) measure.Result { return m.BestAtMost(0.35) },
		})
	}
	for i, s := range []struct {
		name string
		most float64
	}{{"8 B", 2.5}, {"128 KB", 25}} {
		out = append(out, exchange{
			name: "asynchronous Send, " + s.name, unit: "µs",
			command: fmt.Sprintf("%s %d %d", twonode.Calls, callSizes[i], 300),
			value:   func(l, _ twonode.Answer) float64 { return l.Median / microsecond },
			target:  func(m measure.Result) measure.Result { return m.BestAtMost(s.most) },
			async:   true, plain: callSizes[i] == 8,
		})
	}
	return out
}

// transport compares P2PSAP with other transports, between two hosts and within one.
func transport(ctx context.Context, r *measure.Run) error {
	pair, err := vethHosts()
	if err != nil {
		r.Skip("veth", err)
	} else if err := compareTransports(ctx, r, pair); err != nil {
		return err
	}
	return compareTransports(ctx, r, loopback())
}

// contender is a transport under comparison.
type contender struct {
	kind, name string
	pair       *pair
	values     [][]float64 // by exchange and round
	lost       []int       // messages, by exchange
	failed     error
}

// compareTransports does every exchange with every transport once a round.
func compareTransports(ctx context.Context, r *measure.Run, h hosts) error {
	defer h.close()
	all := exchanges()
	var contenders []*contender
	for _, t := range transports(h) {
		p, err := t.open(ctx, r, h)
		if err != nil {
			r.Skip(h.name+": "+t.name, err)
			continue
		}
		defer p.close()
		contenders = append(contenders, &contender{
			kind: t.kind, name: t.name, pair: p, values: make([][]float64, len(all)), lost: make([]int, len(all)),
		})
	}
	for round := range r.Repeat(r.Rounds + 1) {
		for i := range all {
			for _, c := range contenders {
				if c.failed == nil && all[i].applies(c.kind) {
					c.exchange(&all[i], i, round > 0) // the first round warms up
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i := range all {
		for _, c := range contenders {
			if m, ours := c.result(h, &all[i], i, contenders); ours {
				r.Add(m)
			}
		}
	}
	for _, c := range contenders {
		if c.failed != nil {
			r.Skip(h.name+": "+c.name, c.failed)
		}
	}
	return nil
}

// exchange does the exchange of an index once.
func (c *contender) exchange(e *exchange, i int, count bool) (leader twonode.Answer) {
	leader, other, err := c.pair.do(e.command)
	if err != nil {
		c.failed = fmt.Errorf("stopped at %s: %w", e.name, err)
		return leader
	}
	if count {
		c.values[i] = append(c.values[i], e.value(leader, other))
		c.lost[i] += max(leader.Lost, other.Lost)
	}
	return leader
}

// result returns the figures of ours, beside those of all others; ours is false for the others.
func (c *contender) result(h hosts, e *exchange, i int, all []*contender) (m measure.Result, ours bool) {
	if len(c.values[i]) == 0 || !c.own() {
		return m, false
	}
	m = measure.Over(h.name+": "+e.name+", "+c.name, e.unit, c.values[i])
	switch {
	case slices.Contains([]string{kindShared, kindStream, kindSealedStream, kindChosen}, c.kind): // targets are ratios
	case c.kind != kindSealed:
		m = e.target(m)
	case e.unit == "GB/s":
		m = m.BestAtLeast(1.4)
	}
	for _, other := range all {
		if !other.own() && (other.kind != kindVader || c.kind == kindShared) {
			m = m.Against(other.name, other.values[i])
		}
		if other.kind == kindDatagrams && other.lost[i] > 0 {
			m = m.Because(fmt.Sprintf("%d plain datagrams were lost and are not timed.", other.lost[i]))
		}
	}
	return m, true
}

// own reports whether the transport is one of this project.
func (c *contender) own() bool {
	return slices.Contains(
		[]string{kindOurs, kindSealed, kindAsync, kindShared, kindStream, kindSealedStream, kindChosen}, c.kind)
}
