package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/bench/internal/duel"
)

// order is one thing that is compared: what both ends are told, what is taken from
// their answers, and the target of ours.
type order struct {
	name, unit string
	line       string
	value      func(leader, other duel.Answer) float64
	best       func(m measurement) measurement // holds ours against the target
	only       string                          // the carrier that it is for; "": all of them, and then not the asynchronous one
	floor      bool                            // plain datagrams beside it, that one sees what the machine allows
}

// takes tells whether a carrier of that kind obeys the order.
func (o *order) takes(kind string) bool {
	switch kind {
	case kindFloor:
		return o.floor
	case kindAsync:
		return o.only == kindAsync
	}
	return o.only == "" || o.only == kind
}

const microsecond = 1e3 // in the answers' nanoseconds

// orders are short, so that the rounds of all transports lie close together.
func orders() []order {
	var out []order
	for _, s := range []struct {
		name         string
		bytes, count int
		most         float64
	}{{"8 B", 8, 2000, 4}, {"8 KB", 8 << 10, 1500, 5}, {"64 KB", 64 << 10, 800, 10}, {"512 KB", 512 << 10, 150, 50}} {
		out = append(out, order{
			name: "one way, " + s.name, unit: "µs", line: fmt.Sprintf("%s %d %d", duel.Latency, s.bytes, s.count),
			value: func(l, _ duel.Answer) float64 { return l.Least / microsecond },
			best:  func(m measurement) measurement { return m.lowAtMost(s.most) }, floor: s.bytes == 8,
		})
	}
	const messages, paced, small, rate = 3000, 2000, 100000, 1e9
	out = append(out, order{
		name: "64 KB messages", unit: "GB/s", line: fmt.Sprintf("%s %d %d", duel.Stream, 64<<10, messages),
		value: func(l, _ duel.Answer) float64 { return messages * (64 << 10) / l.Elapsed },
		best:  func(m measurement) measurement { return m.highAtLeast(4.5) },
	}, order{
		name: "8 B messages", unit: "million/s", line: fmt.Sprintf("%s %d %d", duel.Stream, 8, small),
		value: func(l, _ duel.Answer) float64 { return small / l.Elapsed * 1e3 },
		best:  func(m measurement) measurement { return m.highAtLeast(1.5) },
	})
	for i, end := range []string{"sender", "receiver"} {
		out = append(out, order{
			name: "processor of the " + end + " at 1 GB/s", unit: "cores", line: fmt.Sprintf("%s %d %d %d", duel.Stream, 64<<10, paced, int(rate)),
			// By the byte: who cannot carry 1 GB/s took longer.
			value: func(l, o duel.Answer) float64 {
				return [2]duel.Answer{l, o}[i].Processor / (paced * (64 << 10) / rate * 1e9)
			},
			best: func(m measurement) measurement { return m.lowAtMost(0.35) },
		})
	}
	for i, s := range []struct {
		name string
		most float64
	}{{"8 B", 2.5}, {"128 KB", 25}} {
		out = append(out, order{
			name: "asynchronous Send, " + s.name, unit: "µs", line: fmt.Sprintf("%s %d %d", duel.Calls, callSizes[i], 300),
			value: func(l, _ duel.Answer) float64 { return l.Median / microsecond },
			best:  func(m measurement) measurement { return m.lowAtMost(s.most) }, only: kindAsync, floor: callSizes[i] == 8,
		})
	}
	return out
}

// transport compares ours with what people would use instead, over a wire between
// two hosts and within one.
func transport(ctx context.Context, b *bench) error {
	w, err := wire()
	if err != nil {
		b.report.add(measurement{Part: "transport", Name: "veth", Note: "not measured: " + err.Error()})
	} else if err := b.compare(ctx, w); err != nil {
		return err
	}
	return b.compare(ctx, loopback())
}

// compare runs every order with every carrier once a round.
func (b *bench) compare(ctx context.Context, p place) error {
	defer p.close()
	var carriers []*carrier
	var kinds []string
	for _, k := range []struct {
		kind, name string
		make       func(context.Context, place) (*carrier, error)
	}{
		{kindOurs, "p2psap", b.ours}, {kindSealed, "p2psap, protected", b.oursSealed}, {kindAsync, "p2psap, asynchronous", b.oursAsync}, {kindTCP, "TCP in Go", b.tcp},
		{"quic", "quic-go", b.quic}, {"mpi", "Open MPI, TCP", b.mpi}, {kindFloor, "plain datagrams", b.floor},
	} {
		c, err := k.make(ctx, p)
		if err != nil {
			b.report.add(measurement{Part: "transport", Name: p.name + ": " + k.name, Note: err.Error()})
			continue
		}
		defer c.close()
		carriers, kinds = append(carriers, c), append(kinds, k.kind)
	}
	all := orders()
	values, lost := make([][][]float64, len(all)), make([][]int, len(all))
	failed := make([]string, len(carriers))
	for round := range b.rounds + 1 { // the first one warms up
		for i, o := range all {
			if values[i] == nil {
				values[i], lost[i] = make([][]float64, len(carriers)), make([]int, len(carriers))
			}
			for j, c := range carriers {
				if failed[j] != "" || !o.takes(kinds[j]) {
					continue
				}
				x, y, err := c.order(o.line)
				if err != nil {
					failed[j] = fmt.Sprintf("%s: %v", o.name, err)
					continue
				}
				if round > 0 {
					values[i][j] = append(values[i][j], o.value(x, y))
					lost[i][j] += max(x.Lost, y.Lost)
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	b.tell(p, all, carriers, kinds, values, lost, failed)
	return nil
}

func (b *bench) tell(p place, all []order, carriers []*carrier, kinds []string, values [][][]float64, lost [][]int, failed []string) {
	for i, o := range all {
		var ours measurement
		for j, c := range carriers {
			if len(values[i][j]) == 0 {
				continue
			}
			m := over("transport", p.name+": "+o.name+", "+c.name, o.unit, values[i][j])
			switch {
			case kinds[j] == kindOurs || kinds[j] == kindAsync:
				m = o.best(m)
				ours = m
			case kinds[j] == kindSealed && o.unit == "GB/s":
				m = m.highAtLeast(1.4)
			case kinds[j] == kindFloor && ours.Value > 0 && m.Value > 0:
				m = m.because(fmt.Sprintf("%s: p2psap is %.2f times the median of plain datagrams, a system call each; best against best %.2f", p.name+", "+o.name, ours.Value/m.Value, ours.Low/m.Low))
			case kinds[j] == kindTCP && ours.Value > 0 && m.Value > 0:
				m = m.because(fmt.Sprintf("%s: p2psap is %.2f times TCP's median", p.name+", "+o.name, ours.Value/m.Value))
			}
			if k := lost[i][j]; k > 0 {
				m = m.because(strings.TrimPrefix(fmt.Sprintf("%s; %d messages were lost and are not timed", m.Note, k), "; "))
			}
			b.report.add(m)
		}
	}
	for j, why := range failed {
		if why != "" {
			b.report.add(measurement{Part: "transport", Name: p.name + ": " + carriers[j].name, Note: "stopped at " + why})
		}
	}
}
