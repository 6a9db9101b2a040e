package traces

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/p2pdc/p2pdc/trace"
)

// Stats is what the records say about the traffic of a run. Times are in seconds.
type Stats struct {
	Nodes []NodeStats `json:"nodes"`
	// Directions are the sessions, each way by itself, as the sending end recorded them.
	Directions []*Direction `json:"directions"`
	LAN        Traffic      `json:"lan"`
	WAN        Traffic      `json:"wan"`
}

// NodeStats describes what was recorded of a node.
type NodeStats struct {
	Name        string   `json:"name"`
	Run         string   `json:"run"`
	Cluster     string   `json:"cluster,omitempty"`
	Records     int      `json:"records"`
	Overwritten uint64   `json:"overwritten"`
	Seconds     float64  `json:"seconds"`     // from the first record to the last
	Relaxing    float64  `json:"relaxing"`    // of them
	ClockError  *float64 `json:"clock_error"` // null: only the clock of the host is known
}

// Traffic sums the sessions over one kind of path.
type Traffic struct {
	Connections int    `json:"connections"` // sessions, both directions counted once
	Writes      uint64 `json:"writes"`
	Bytes       uint64 `json:"bytes"`
}

// Direction is what one end of a session has sent.
type Direction struct {
	Session string   `json:"session"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Mode    string   `json:"mode"`
	Network string   `json:"network"`
	Column  string   `json:"column"`
	WAN     bool     `json:"wan"`
	Writes  uint64   `json:"writes"`
	Bytes   uint64   `json:"bytes"`
	Sizes   []Size   `json:"sizes"` // most frequent first
	Gap     Quantity `json:"gap"`   // between two writes
	// Delay is from a write until the other end has received the message: the age of an asynchronous value. Accepted is
	// until the sender knows that it was accepted.
	Delay    Quantity `json:"delay"`
	Accepted Quantity `json:"accepted"`

	Window     float64 `json:"window"` // mean at writes
	WindowUnit string  `json:"window_unit"`
	InFlight   float64 `json:"in_flight"` // mean at writes
	// Excess is the mean amount by which what was in flight, what waited and the write together exceeded the congestion
	// window, in the unit of trace.Record.Window.
	Excess       float64 `json:"excess"`
	WindowFull   uint64  `json:"window_full"`
	IdleRestarts uint64  `json:"idle_restarts"`

	Segments uint64 `json:"segments"`
	Trains   uint64 `json:"trains"`
	Lost     Losses `json:"lost"`
	Replaced uint64 `json:"replaced"`
	Dropped  uint64 `json:"dropped"`
	Epochs   int    `json:"epochs"`
	Moves    int    `json:"moves"`

	gaps, delays, acceptances []float64
	sizes                     map[uint32]uint64
	last                      int64 // time of the last write
	unaccepted                []transfer
	windows                   float64 // writes with a window
	layout                    *trace.Layout
	packet                    float64 // bytes of the longest segment
}

// Losses counts lost segments by what showed the loss.
type Losses struct {
	Duplicates uint64 `json:"duplicates"`
	Timeouts   uint64 `json:"timeouts"`
	Named      uint64 `json:"named"`
	Probes     uint64 `json:"probes"`
}

// Size is how often messages of a length were sent.
type Size struct {
	Bytes  uint32 `json:"bytes"`
	Writes uint64 `json:"writes"`
}

// Quantity describes a sample of times.
type Quantity struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

type transfer struct {
	number uint16 // low half
	at     int64
}

// Text writes tables.
func (t *Stats) Text(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "node\trecords\toverwritten\tduration\trelaxing\tclock ±")
	for _, n := range t.Nodes {
		clock := "host's"
		if n.ClockError != nil {
			clock = span(*n.ClockError)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\t%s\n", n.Name, n.Records, n.Overwritten, span(n.Seconds),
			span(n.Relaxing), clock)
	}
	fmt.Fprintln(tw, "\nwrites\t\t\twrites × size\tbytes\tgap\tdelay\taccepted\tpath")
	for _, d := range t.Directions {
		fmt.Fprintf(tw, "%s\t%s → %s\t%s\t%s\t%d\t%s\t%s\t%s\t%s, %s\n", d.Session, d.From, d.To, d.Mode,
			d.sizesText(), d.Bytes, d.Gap, d.Delay, d.Accepted, kind(d.WAN), d.Network)
	}
	fmt.Fprintln(tw, "\nwindow\t\tat writes\tin flight\texcess\tfull\tidle restarts\tsegments\ttrains\t"+
		"lost: duplicates\ttime-outs\tnamed\tprobes\treplaced\tdropped\tepochs\tmoves")
	for _, d := range t.Directions {
		fmt.Fprintf(tw, "%s\t%s → %s\t%s\t%.4g\t%.4g", d.Session, d.From, d.To, d.windowText(), d.InFlight, d.Excess)
		for _, n := range []uint64{d.WindowFull, d.IdleRestarts, d.Segments, d.Trains, d.Lost.Duplicates, d.Lost.Timeouts,
			d.Lost.Named, d.Lost.Probes, d.Replaced, d.Dropped, uint64(d.Epochs), uint64(d.Moves)} {
			fmt.Fprintf(tw, "\t%d", n)
		}
		fmt.Fprintln(tw)
	}
	fmt.Fprintln(tw, "\ntotal\tconnections\twrites\tbytes")
	for i, sum := range []Traffic{t.LAN, t.WAN} {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\n", kind(i == 1), sum.Connections, sum.Writes, sum.Bytes)
	}
	_ = tw.Flush()
}

// kind returns the word for a path between clusters or inside one.
func kind(wan bool) string {
	if wan {
		return "WAN"
	}
	return "LAN"
}

// span prints seconds with three digits.
func span(s float64) string {
	d := time.Duration(s * 1e9)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit || d <= -unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// String returns the median.
func (q Quantity) String() string {
	if q.Count == 0 {
		return "-"
	}
	return span(q.Median)
}

// sizesText lists the most frequent sizes.
func (d *Direction) sizesText() string {
	const most = 3
	var out []string
	for i, s := range d.Sizes {
		if i == most {
			out = append(out, "…")
			break
		}
		out = append(out, fmt.Sprintf("%d × %d", s.Writes, s.Bytes))
	}
	return strings.Join(out, ", ")
}

func (d *Direction) windowText() string {
	if d.Window == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g %s", d.Window, map[string]string{"bytes": "B", "packets": "packets"}[d.WindowUnit])
}

// Dot writes the peers as a graph for Graphviz: an edge for each pair that has exchanged messages, red between clusters
// and blue inside one.
func (t *Stats) Dot(to io.Writer) error {
	var b strings.Builder
	b.WriteString("graph trace {\n  node [shape=box];\n")
	type edge struct {
		a, b string
		wan  bool
	}
	var order []edge
	sums := map[edge]*Traffic{}
	for _, n := range t.Nodes {
		fmt.Fprintf(&b, "  %q;\n", n.Name)
	}
	for _, d := range t.Directions {
		e := edge{min(d.From, d.To), max(d.From, d.To), d.WAN}
		if sums[e] == nil {
			sums[e] = &Traffic{}
			order = append(order, e)
		}
		sums[e].Writes += d.Writes
		sums[e].Bytes += d.Bytes
	}
	for _, e := range order {
		colour := "blue"
		if e.wan {
			colour = "red"
		}
		fmt.Fprintf(&b, "  %q -- %q [color=%s, label=\"%d writes, %d B\"];\n", e.a, e.b, colour, sums[e].Writes,
			sums[e].Bytes)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(to, b.String())
	return err
}
