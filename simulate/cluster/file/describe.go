package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Explanation explains a description, as text (String) or as JSON.
type Explanation struct {
	Name    string   `json:"name"`
	Builtin bool     `json:"builtin"`
	About   string   `json:"about,omitempty"`
	Sources []string `json:"sources"`
	// MostMachines is the largest number of machines of a run; 0: no bound.
	MostMachines int     `json:"most_machines"`
	Entries      []Entry `json:"entries"`
}

// Entry is one line of an explanation.
type Entry struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Explain explains a description.
func Explain(d *cluster.Description) Explanation {
	e := Explanation{Name: d.Name, About: strings.Join(strings.Fields(d.About), " "), Sources: append([]string{},
		d.Sources...)}
	most, open := d.Most()
	if !open {
		e.MostMachines = most
	}
	add := func(key, text string) { e.Entries = append(e.Entries, Entry{key, text}) }
	for _, s := range d.Sites {
		var groups []string
		for _, g := range s.Machines {
			count := "as many as are asked for"
			if g.Count > 0 {
				count = fmt.Sprint(g.Count)
			}
			if g.OneMachine {
				count += ", on one machine,"
			}
			groups = append(groups, fmt.Sprintf("%s × %s", count, g.Class))
		}
		add("site "+s.Name, fmt.Sprintf("%s; network %s", strings.Join(groups, ", then "), s.Network))
	}
	for i := range d.Classes {
		add("machine "+d.Classes[i].Name, class(&d.Classes[i]))
	}
	for i := range d.Networks {
		add("network "+d.Networks[i].Name, network(&d.Networks[i]))
	}
	for _, w := range d.WAN {
		add(fmt.Sprintf("line %s–%s", w.Between[0], w.Between[1]),
			fmt.Sprintf("%s each way, %v one way beyond the sites' networks, queue %s%s",
				rates().format(w.Rate), w.Latency, sizes().format(float64(w.Queue)), chances(w.Loss, w.Jitter)))
	}
	for _, v := range d.Events {
		add("event", event(v))
	}
	return e
}

func class(c *cluster.Class) string {
	s := fmt.Sprintf("%s on one thread", relaxations().format(c.Relaxation))
	if c.Slow > 1 {
		s += fmt.Sprintf(", %g times slower", c.Slow)
	}
	if c.Jitter > 0 {
		s += fmt.Sprintf(", give or take %s", ratios().format(c.Jitter))
	}
	if c.Straggle.PerSecond > 0 {
		s += fmt.Sprintf("; held up for %v, %s on average", c.Straggle.For, frequencies().format(c.Straggle.PerSecond))
	}
	if c.Part > 0 {
		s += fmt.Sprintf("; %v more for each part of a sweep", c.Part)
	}
	if c.Crowding > 0 {
		s += fmt.Sprintf("; %s longer for every other core that relaxes", ratios().format(c.Crowding))
	}
	if c.Wake.Takes > 0 {
		s += fmt.Sprintf("; %v to wake after a wait of more than %v", c.Wake.Takes, c.Wake.After)
	}
	switch {
	case c.Copies:
		s += "; the relaxing thread sends and receives itself"
	case c.Cores == 1:
		s += "; one core, which sends and receives too"
	default:
		s += fmt.Sprintf("; %d cores, one of which sends and receives", c.Cores)
	}
	return s + fmt.Sprintf("; sending costs %s, receiving %s", cost(c.Send), cost(c.Receive))
}

func cost(c cluster.Cost) string {
	if c == (cluster.Cost{}) {
		return "nothing"
	}
	return fmt.Sprintf("%v a message + %v a segment + %s a byte", c.Message, c.Segment, times().format(c.Byte))
}

func network(n *cluster.Network) string {
	unit, full := "MTU", "frames are lost"
	if n.Kind == cluster.IB {
		unit, full = "segments of at most", "senders wait"
	}
	s := fmt.Sprintf("%s, %s each way to every machine, %v one way, "+
		"%s %s (+ %s on the line), %s a port of the switch, beyond which %s",
		n.Kind, rates().format(n.Rate), n.Latency, unit, sizes().format(float64(n.MTU)),
		sizes().format(float64(n.Frame)), sizes().format(float64(n.Queue)), full)
	if n.Backplane > 0 {
		s += fmt.Sprintf(", %s through the switch in all", rates().format(n.Backplane))
	}
	if h := &n.Shaper; h.Rate > 0 {
		where := "in it"
		if h.Outside {
			where = "outside"
		}
		s += fmt.Sprintf(", of which a machine sends no more than %s (%s at once; %s wait %s, what is more is lost)",
			rates().format(h.Rate), sizes().format(float64(h.Burst)), sizes().format(float64(h.Queue)), where)
	}
	return s + chances(n.Loss, n.Jitter)
}

func chances(loss float64, jitter time.Duration) string {
	s := ""
	if loss > 0 {
		s += fmt.Sprintf(", %s of the frames lost by chance", ratios().format(loss))
	}
	if jitter > 0 {
		s += fmt.Sprintf(", up to %v more by chance", jitter)
	}
	return s
}

func event(e cluster.Event) string {
	s := fmt.Sprintf("after %v ", e.At)
	switch {
	case e.Launcher && e.Lost:
		s += "the launcher's machine falls silent"
	case e.Launcher && e.Killed:
		s += "the launcher is killed"
	case e.Launcher || len(e.Apart) > 0:
		s += fmt.Sprintf("nothing passes between %s and all others", apart(&e))
	case e.Lost:
		s += fmt.Sprintf("machine %d falls silent", e.Rank)
	case e.Killed:
		s += fmt.Sprintf("the peer of machine %d is killed", e.Rank)
	case e.Slow != 0:
		s += fmt.Sprintf("machine %d relaxes %g times slower", e.Rank, e.Slow)
	case e.Cut[1] == "":
		s += fmt.Sprintf("the network of %s is cut in halves", e.Cut[0])
	default:
		s += fmt.Sprintf("nothing passes between %s and %s", e.Cut[0], e.Cut[1])
	}
	if e.Until > 0 {
		s += fmt.Sprintf(", until %v", e.Until)
	}
	return s
}

// apart lists the machines that a cut separates from all others.
func apart(e *cluster.Event) string {
	var names []string
	if e.Launcher {
		names = append(names, "the launcher")
	}
	for _, rank := range e.Apart {
		names = append(names, fmt.Sprintf("machine %d", rank))
	}
	return strings.Join(names, ", ")
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	line := func(key, text string) { fmt.Fprintf(&b, "%-20s %s\n", key, text) }
	line("cluster", e.Name)
	if e.About != "" {
		line("about", e.About)
	}
	if e.MostMachines > 0 {
		line("machines", fmt.Sprintf("%d at most", e.MostMachines))
	} else {
		line("machines", "as many as are asked for")
	}
	for _, v := range e.Entries {
		line(v.Key, v.Text)
	}
	for _, s := range e.Sources {
		line("source", s)
	}
	return b.String()
}
