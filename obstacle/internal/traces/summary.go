package traces

import (
	"cmp"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/trace"
)

// Stats returns the statistics of the traffic.
func (s *Set) Stats() *Stats {
	out := &Stats{Nodes: []NodeStats{}, Directions: []*Direction{}}
	bySession := make([][]*Direction, len(s.Nodes))
	for i, n := range s.Nodes {
		out.Nodes = append(out.Nodes, s.nodeStats(i))
		of := make([]*Direction, len(n.Sessions))
		for j := range n.Records {
			r := &n.Records[j]
			if int(r.Session) >= len(of) || r.Session == 0 {
				continue
			}
			d := of[r.Session]
			if d == nil {
				d = newDirection(n, r)
				of[r.Session], out.Directions = d, append(out.Directions, d)
			}
			d.add(n, r)
		}
		for j := range n.Records {
			if r := &n.Records[j]; r.Kind == trace.Send && int(r.Session) < len(of) && r.Session != 0 {
				of[r.Session].addWindow(r)
			}
		}
		bySession[i] = of
	}
	for _, m := range s.Messages {
		sent, got := &s.Nodes[m.From].Records[m.Sent], &s.Nodes[m.To].Records[m.Unread]
		if of := bySession[m.From]; int(sent.Session) < len(of) && of[sent.Session] != nil {
			d := of[sent.Session]
			d.delays = append(d.delays, seconds(s.Time(m.To, got)-s.Time(m.From, sent)))
		}
	}
	connected := map[[3]string]bool{}
	for _, d := range out.Directions {
		d.finish()
		t := &out.LAN
		if d.WAN {
			t = &out.WAN
		}
		t.Writes += d.Writes
		t.Bytes += d.Bytes
		if k := [3]string{d.Session, min(d.From, d.To), max(d.From, d.To)}; !connected[k] {
			connected[k] = true
			t.Connections++
		}
	}
	return out
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func (s *Set) nodeStats(i int) NodeStats {
	n := s.Nodes[i]
	out := NodeStats{Name: n.Name, Run: n.Run, Cluster: n.Cluster, Records: len(n.Records), Overwritten: n.Overwritten}
	if k := len(n.Records); k > 0 {
		out.Seconds = seconds(n.Records[k-1].At - n.Records[0].At)
	}
	begun := int64(-1)
	for j := range n.Records {
		switch r := &n.Records[j]; r.Kind {
		case trace.RelaxBegin:
			begun = r.At
		case trace.RelaxEnd:
			if begun >= 0 {
				out.Relaxing += seconds(r.At - begun)
			}
			begun = -1
		}
	}
	if e := s.Uncertain[i]; e >= 0 {
		wrong := seconds(e)
		out.ClockError = &wrong
	}
	return out
}

func newDirection(n *trace.Node, r *trace.Record) *Direction {
	of := n.Session(r.Session)
	return &Direction{Session: of.Name, From: n.Name, To: of.Peer, WindowUnit: "bytes", Mode: "sync",
		sizes: map[uint32]uint64{}, last: -1}
}

// add counts a record.
func (d *Direction) add(n *trace.Node, r *trace.Record) {
	if d.layout == nil || d.layout.Epoch != r.Epoch {
		d.take(n.Layout(r.Session, r.Epoch))
	}
	switch r.Kind {
	case trace.Send:
		d.Writes++
		d.Bytes += uint64(r.Bytes)
		d.sizes[r.Bytes]++
		if d.last >= 0 {
			d.gaps = append(d.gaps, seconds(r.At-d.last))
		}
		d.last = r.At
		d.unaccepted = append(d.unaccepted, transfer{r.Count, r.At})
	case trace.Accepted:
		for len(d.unaccepted) > 0 && int16(uint16(r.Number)-d.unaccepted[0].number) >= 0 {
			d.acceptances = append(d.acceptances, seconds(r.At-d.unaccepted[0].at))
			d.unaccepted = d.unaccepted[1:]
		}
	case trace.SegmentOut:
		d.Segments += uint64(r.Count)
		d.Trains++
		d.packet = max(d.packet, float64(r.Bytes)/float64(max(r.Count, 1)))
	case trace.Loss:
		d.Lost.add(r)
	case trace.IdleRestart:
		d.IdleRestarts++
	case trace.WindowFull:
		d.WindowFull++
	case trace.Replaced:
		d.Replaced += uint64(r.Count)
	case trace.Dropped:
		d.Dropped += uint64(max(r.Count, 1))
	case trace.EpochBegin:
		d.Epochs++
	case trace.Move:
		d.Moves++
	}
}

// take notes what a composition says of the session; the last one counts.
func (d *Direction) take(l *trace.Layout) {
	if d.layout = l; l == nil {
		return
	}
	d.Network, d.Column, d.WAN = l.Network, l.Column, l.WAN
	d.Mode, d.WindowUnit = "sync", "bytes"
	if l.Asynchronous {
		d.Mode = "async"
		d.WindowUnit = "packets"
	}
}

func (l *Losses) add(r *trace.Record) {
	of := [...]*uint64{trace.ByDuplicates: &l.Duplicates, trace.ByTimeout: &l.Timeouts, trace.ByName: &l.Named,
		trace.ByProbe: &l.Probes}
	if int(r.Cause) < len(of) && of[r.Cause] != nil {
		*of[r.Cause] += uint64(r.Count)
	}
}

// addWindow adds the window at a write. In a window of packets a message counts as its segments.
func (d *Direction) addWindow(r *trace.Record) {
	if r.Window == 0 {
		return
	}
	d.windows++
	d.Window += float64(r.Window)
	d.InFlight += float64(r.InFlight)
	own := float64(r.Bytes)
	if d.WindowUnit == "packets" {
		own = math.Ceil(own / max(d.packet, 1))
	}
	d.Excess += max(0, float64(r.InFlight)+float64(r.Waiting)+own-float64(r.Window))
}

// finish computes the means.
func (d *Direction) finish() {
	if d.windows > 0 {
		d.Window, d.InFlight, d.Excess = d.Window/d.windows, d.InFlight/d.windows, d.Excess/d.windows
	}
	d.Gap, d.Delay, d.Accepted = quantity(d.gaps), quantity(d.delays), quantity(d.acceptances)
	d.Sizes = []Size{}
	for bytes, writes := range d.sizes {
		d.Sizes = append(d.Sizes, Size{bytes, writes})
	}
	slices.SortFunc(d.Sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// quantity describes a sample, which it sorts.
func quantity(sample []float64) (q Quantity) {
	q.Count = len(sample)
	if q.Count == 0 {
		return q
	}
	slices.Sort(sample)
	for _, v := range sample {
		q.Mean += v / float64(q.Count)
	}
	q.Median, q.P99 = sample[q.Count/2], sample[min(q.Count*99/100, q.Count-1)]
	return q
}
