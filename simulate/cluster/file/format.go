package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Format returns the text from which Parse reads the same description, to the last bit.
func Format(d *cluster.Description) []byte {
	w := &writer{}
	w.line(0, "name", strconv.Quote(d.Name))
	if d.About != "" {
		w.line(0, "about", strconv.Quote(d.About))
	}
	if len(d.Sources) > 0 {
		w.line(0, "sources", "")
		for _, s := range d.Sources {
			fmt.Fprintf(w, "  - %s\n", strconv.Quote(s))
		}
	}
	w.line(0, "machines", "")
	for i := range d.Classes {
		w.class(&d.Classes[i])
	}
	w.line(0, "networks", "")
	for i := range d.Networks {
		w.network(&d.Networks[i])
	}
	w.line(0, "sites", "")
	for _, s := range d.Sites {
		w.line(1, strconv.Quote(s.Name), "")
		w.line(2, "network", strconv.Quote(s.Network))
		w.line(2, "machines", "")
		for _, g := range s.Machines {
			w.group(&g)
		}
	}
	w.joined(d)
	return []byte(w.String())
}

func (w *writer) group(g *cluster.Group) {
	fmt.Fprintf(w, "      - {class: %q", g.Class)
	if g.Count > 0 {
		fmt.Fprintf(w, ", count: %d", g.Count)
	}
	if g.OneMachine {
		w.WriteString(", together: true")
	}
	w.WriteString("}\n")
}

// writer writes keys with values.
type writer struct{ strings.Builder }

func (w *writer) line(depth int, key, value string) {
	w.WriteString(strings.Repeat("  ", depth) + key + ":")
	if value != "" {
		w.WriteString(" " + value)
	}
	w.WriteString("\n")
}

// some writes a line unless the value is the default.
func (w *writer) some(depth int, key string, v float64, m measure) {
	if v != 0 {
		w.line(depth, key, m.format(v))
	}
}

func (w *writer) time(depth int, key string, d time.Duration) {
	w.some(depth, key, float64(d), times())
}

func (w *writer) class(c *cluster.Class) {
	w.line(1, strconv.Quote(c.Name), "")
	w.line(2, "cores", strconv.Itoa(c.Cores))
	w.line(2, "relaxation", relaxations().format(c.Relaxation))
	if c.Copies {
		w.line(2, "copies", "true")
	}
	w.cost("send", c.Send)
	w.cost("receive", c.Receive)
	w.some(2, "jitter", c.Jitter, ratios())
	if c.Straggle != (cluster.Straggle{}) {
		w.line(2, "straggle", "")
		w.some(3, "rate", c.Straggle.PerSecond, frequencies())
		w.time(3, "for", c.Straggle.For)
	}
	if c.Slow != 0 {
		w.line(2, "slow", plain(c.Slow))
	}
	w.time(2, "part", c.Part)
	w.some(2, "crowding", c.Crowding, ratios())
	if c.Wake != (cluster.Wake{}) {
		w.line(2, "wake", "")
		w.time(3, "after", c.Wake.After)
		w.line(3, "takes", times().format(float64(c.Wake.Takes)))
	}
}

func (w *writer) cost(key string, c cluster.Cost) {
	if c == (cluster.Cost{}) {
		return
	}
	w.line(2, key, "")
	w.time(3, "message", c.Message)
	w.time(3, "segment", c.Segment)
	w.some(3, "byte", c.Byte, times())
}

func (w *writer) network(n *cluster.Network) {
	w.line(1, strconv.Quote(n.Name), "")
	w.line(2, "kind", n.Kind)
	w.line(2, "rate", rates().format(n.Rate))
	w.line(2, "latency", times().format(float64(n.Latency)))
	w.line(2, "queue", sizes().format(float64(n.Queue)))
	w.line(2, "mtu", sizes().format(float64(n.MTU)))
	w.some(2, "frame", float64(n.Frame), sizes())
	w.some(2, "loss", n.Loss, ratios())
	w.time(2, "jitter", n.Jitter)
	w.some(2, "backplane", n.Backplane, rates())
	if s := &n.Shaper; s.Rate > 0 {
		w.line(2, "shaper", "")
		w.line(3, "rate", rates().format(s.Rate))
		w.some(3, "burst", float64(s.Burst), sizes())
		w.line(3, "queue", sizes().format(float64(s.Queue)))
		if s.Outside {
			w.line(3, "outside", "true")
		}
	}
}

// joined writes the links between sites, and the events.
func (w *writer) joined(d *cluster.Description) {
	if len(d.WAN) > 0 {
		w.line(0, "wide", "")
	}
	for _, l := range d.WAN {
		fmt.Fprintf(w, "  - between: [%q, %q]\n", l.Between[0], l.Between[1])
		w.line(2, "rate", rates().format(l.Rate))
		w.line(2, "latency", times().format(float64(l.Latency)))
		w.line(2, "queue", sizes().format(float64(l.Queue)))
		w.some(2, "loss", l.Loss, ratios())
		w.time(2, "jitter", l.Jitter)
	}
	if len(d.Events) > 0 {
		w.line(0, "events", "")
	}
	for _, e := range d.Events {
		fmt.Fprintf(w, "  - at: %s\n", times().format(float64(e.At)))
		w.time(2, "until", e.Until)
		w.event(&e)
	}
}

// event writes what an event does.
func (w *writer) event(e *cluster.Event) {
	if e.Launcher {
		w.line(2, "launcher", "true")
	} else if !e.IsCut() {
		w.line(2, "rank", strconv.Itoa(e.Rank))
	}
	switch {
	case e.Lost:
		w.line(2, "lost", "true")
	case e.Killed:
		w.line(2, "killed", "true")
	case e.Slow != 0:
		w.line(2, "slow", plain(e.Slow))
	case len(e.Apart) > 0:
		w.line(2, "apart", strings.ReplaceAll(fmt.Sprint(e.Apart), " ", ", "))
	case e.Launcher:
	case e.Cut[1] == "":
		w.line(2, "cut", fmt.Sprintf("[%q]", e.Cut[0]))
	default:
		w.line(2, "cut", fmt.Sprintf("[%q, %q]", e.Cut[0], e.Cut[1]))
	}
}

func plain(v float64) string { return decimal(v, 0) }
