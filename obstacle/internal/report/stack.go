package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/problem"
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

// ParseLive decodes the state of a run, or the answer of solve, which has the same fields.
func ParseLive(text []byte) (*Live, error) {
	l := &Live{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, err
	}
	if l.Peers < 0 || l.Peers > problem.MaxPeers || !(l.Seconds >= 0 && l.Seconds < maxSeconds) {
		return nil, fmt.Errorf("%d peers for %g s", l.Peers, l.Seconds)
	}
	return l, nil
}

// maxSeconds bounds the time of a run: more than 30,000 years.
const maxSeconds = 1e12

// Fill copies the current values of a status.
func (l *Live) Fill(s *launch.Status) {
	now := s.State()
	p := now.Progress
	l.Seconds, l.Sweep, l.Residual = p.Elapsed.Seconds(), p.Sweep, nullable.Number(p.Residual)
	if p.Sweep == 0 {
		l.Residual = nullable.NaN()
	}
	l.Sessions = []Session{}
	for rank := range l.Peers {
		for _, h := range now.Sessions[rank] {
			l.Sessions = append(l.Sessions, SessionOf(rank, h))
		}
	}
}

// Text writes the compositions as columns, as Table I does, and the sessions that have them.
func (l *Live) Text(w io.Writer) {
	sweep := ""
	if l.Sweep > 0 {
		sweep = fmt.Sprintf("sweep %d, ", l.Sweep)
	}
	fmt.Fprintf(w, "%s, %s, %s: %s%.1f s, residual %s\n",
		l.Problem, l.Scheme, plural(l.Peers, "peer"), sweep, l.Seconds, value(l.Residual))
	columns := alike(l.Sessions)
	if len(columns) == 0 {
		fmt.Fprintln(w, "no session yet")
		return
	}
	t := Tabs(w)
	headings := make([]string, len(columns))
	for i := range headings {
		headings[i] = fmt.Sprintf("[%d]", i+1)
	}
	Marks(t, headings, stackRows(columns), func(i int, row string) string {
		return map[bool]string{true: "x"}[slices.Contains(columns[i][0].Composition, row)]
	})
	t.Flush()
	for i, c := range columns {
		fmt.Fprintf(w, "[%d] %s, %s, network %s%s\n", i+1, c[0].Column, place(c[0]), c[0].Network, below(c[0].Protection))
		for _, s := range c {
			fmt.Fprintf(w, "    %s, at peer %d: %s%s%s; epoch %d, %s, %d messages sent, %d received\n",
				s.Name, s.From, whyThere(s), (1e3*s.RTT).Text(", round trip %.3g ms", ""), frames(s), s.Epoch,
				plural(int(s.Changes), "change"), s.MessagesSent, s.MessagesReceived)
		}
	}
}

// frames states the largest frame in use, which differs from that of the network where a path is narrower; "" if it is not known.
func frames(s Session) string {
	if s.FrameBytes <= 0 {
		return ""
	}
	return fmt.Sprintf(", frames of up to %s", plural(s.FrameBytes, "byte"))
}

// Marks writes a table with a row for each micro-protocol.
func Marks(t io.Writer, headings, rows []string, mark func(column int, row string) string) {
	fmt.Fprintf(t, "micro-protocol\t%s\n", strings.Join(headings, "\t"))
	for _, row := range rows {
		fmt.Fprint(t, row)
		for i := range headings {
			fmt.Fprintf(t, "\t%s", mark(i, row))
		}
		fmt.Fprintln(t)
	}
}

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

func below(protection []string) string {
	if len(protection) == 0 {
		return ""
	}
	return "; over " + strings.Join(protection, ", ")
}

// whyThere returns the reasons for the place of a session, for its network if that is not the best one of this place, and for a
// data path that is down.
func whyThere(s Session) string {
	why := s.Why
	if s.NetworkWhy != "" && s.Network == p2psap.Ethernet.String() {
		why += "; " + s.NetworkWhy
	}
	if s.PathDown != "" && s.Network == p2psap.Stream.String() {
		why += "; the path over Ethernet is down: " + s.PathDown
	} else if s.PathDown != "" {
		why += "; the data path is down: " + s.PathDown
	}
	return why
}

// alike groups sessions by column, place, network and composition.
func alike(all []Session) [][]Session {
	var out [][]Session
	for _, s := range all {
		i := slices.IndexFunc(out, func(c []Session) bool {
			return c[0].Column == s.Column && place(c[0]) == place(s) && c[0].Network == s.Network &&
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
