package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Live is the current state of a run, as solve --status serves it. Its fields are among those of the JSON of solve.
type Live struct {
	Problem  string          `json:"problem"`
	Scheme   string          `json:"scheme"`
	Peers    int             `json:"peers"`
	Seconds  float64         `json:"seconds"` // since the first relaxation
	Sweep    uint64          `json:"sweep"`   // of rank 0
	Residual nullable.Number `json:"relative_residual"`
	Sessions []Session       `json:"sessions"`
	Version  string          `json:"version"`
}

// Fill copies the current values of a status.
func (l *Live) Fill(s *launch.Status) {
	p := s.Progress()
	l.Seconds, l.Sweep, l.Residual = p.Elapsed.Seconds(), p.Sweep, nullable.Number(p.Residual)
	if p.Sweep == 0 {
		l.Residual = nullable.Number(math.NaN())
	}
	l.Sessions = []Session{}
	for rank := range l.Peers {
		for _, h := range s.Sessions(rank) {
			l.Sessions = append(l.Sessions, SessionOf(rank, h))
		}
	}
}

// Text writes the compositions as columns, as Table I does, and the sessions that have them.
func (l *Live) Text(w io.Writer) {
	fmt.Fprintf(w, "%s, %s, %s: %s%.1f s, residual %s\n",
		l.Problem, l.Scheme, plural(l.Peers, "peer"), sweep(l.Sweep), l.Seconds, value(l.Residual))
	columns := alike(l.Sessions)
	if len(columns) == 0 {
		fmt.Fprintln(w, "no session yet")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "micro-protocol")
	for i := range columns {
		fmt.Fprintf(t, "\t[%d]", i+1)
	}
	fmt.Fprintln(t)
	for _, row := range stackRows(columns) {
		fmt.Fprint(t, row)
		for _, c := range columns {
			mark := ""
			if slices.Contains(c[0].Composition, row) {
				mark = "x"
			}
			fmt.Fprintf(t, "\t%s", mark)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	for i, c := range columns {
		fmt.Fprintf(w, "[%d] %s, %s%s\n", i+1, c[0].Column, place(c[0]), below(c[0].Protection))
		for _, s := range c {
			fmt.Fprintf(w, "    %s, at peer %d: %s%s; epoch %d, %s, %d messages sent, %d received\n",
				s.Name, s.From, s.Why, rtt(s), s.Epoch,
				plural(int(s.Changes), "change"), s.MessagesSent, s.MessagesReceived)
		}
	}
}

// place returns the locality of a session and what the monitor has measured.
func place(s Session) string {
	text := s.Locality
	if s.Distance != "" {
		text += " (measured: " + s.Distance + ")"
	}
	if s.Lossy {
		text += " (high loss)"
	}
	return text
}

// below returns the composition that protects the frames of a session.
func below(protection []string) string {
	if len(protection) == 0 {
		return ""
	}
	return "; over " + strings.Join(protection, ", ")
}

func sweep(k uint64) string {
	if k == 0 {
		return ""
	}
	return fmt.Sprintf("sweep %d, ", k)
}

func rtt(s Session) string {
	if !s.RTT.Known() {
		return ""
	}
	return fmt.Sprintf(", round trip %.3g ms", 1e3*float64(s.RTT))
}

// alike groups sessions by column, place and composition.
func alike(all []Session) [][]Session {
	var out [][]Session
	for _, s := range all {
		i := slices.IndexFunc(out, func(c []Session) bool {
			return c[0].Column == s.Column && place(c[0]) == place(s) &&
				slices.Equal(c[0].Composition, s.Composition) && slices.Equal(c[0].Protection, s.Protection)
		})
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	for _, c := range out {
		slices.SortStableFunc(c,
			func(a, b Session) int { return cmp.Or(strings.Compare(a.Name, b.Name), a.From-b.From) })
	}
	return out
}

// stackRows returns the rows of Table I that are in use, followed by the other micro-protocols in use.
func stackRows(columns [][]Session) []string {
	used := func(row string) bool {
		return slices.ContainsFunc(columns, func(c []Session) bool { return slices.Contains(c[0].Composition, row) })
	}
	rows := slices.DeleteFunc(p2psap.TableRows(), func(row string) bool { return !used(row) })
	for _, c := range columns {
		for _, name := range c[0].Composition {
			if !slices.Contains(rows, name) {
				rows = append(rows, name)
			}
		}
	}
	return rows
}
