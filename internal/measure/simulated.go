package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// simulatedTables returns the sections of docs/simulation.md, each made from the newest record of an experiment.
func simulatedTables(now *sources, records map[string][]*Record) (map[string]string, error) {
	out := map[string]string{}
	for part, write := range map[string]func(*Record) string{
		"whatif": whatIfTable, "efficiency": efficiencyTable, "faults": faultTable, "map": mapSentence,
		"localhost": localhostTable,
	} {
		if len(records[part]) == 0 {
			return nil, fmt.Errorf("docs/simulation.md: no record of part %s", part)
		}
		of := records[part][0]
		older, err := of.older(now)
		if err != nil {
			return nil, err
		}
		out[part] = write(of) + fmt.Sprintf("\nRecord: %s%s.\n", of.cite(), older)
	}
	return out, nil
}

// cite returns a link from docs to the page of the record, with its commit, and the date.
func (r *Record) cite() string {
	return fmt.Sprintf("[%s](%s), %s", r.Commit, link(r), r.Date.Format(time.DateOnly))
}

// older returns the words for a figure of the record if what it measures has changed since, and "" if it has not.
func (r *Record) older(now *sources) (string, error) {
	changed, err := r.changedSince(now)
	if err != nil || len(changed) == 0 {
		return "", err
	}
	return ", before changes of the code that it measures", nil
}

// grid is a table that is filled cell by cell. Rows and columns are in the order of their first cell.
type grid struct {
	rows, columns []string
	cells         map[[2]string]string
}

func (g *grid) set(row, column, cell string) {
	if g.cells == nil {
		g.cells = map[[2]string]string{}
	}
	if !slices.Contains(g.rows, row) {
		g.rows = append(g.rows, row)
	}
	if !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
	g.cells[[2]string{row, column}] = cell
}

// markdown returns the table; title is the heading of the rows.
func (g *grid) markdown(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|%s\n", title, strings.Join(g.columns, " | "), strings.Repeat("---|", 1+len(g.columns)))
	for _, row := range g.rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, column := range g.columns {
			if cell := g.cells[[2]string{row, column}]; cell != "" {
				b.WriteString(" " + cell)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// whatIfTable returns seconds of the published run and of the membrane's, and factors by which a row is faster than the
// first of its column.
func whatIfTable(of *Record) string {
	var published, membrane grid
	for i := range of.Results {
		r := &of.Results[i]
		cluster, what, _ := strings.Cut(r.Name, ", 64 machines, ")
		if !strings.HasPrefix(cluster, "graphene-") || len(r.Peers) == 0 {
			continue
		}
		cell := fmt.Sprintf("%s (%.3g)", number(r.Value), 1/r.Peers[0].Ratio)
		if refinement, ok := strings.CutPrefix(what, "256³, "); ok {
			published.set(refinement, cluster, cell)
		} else if method, ok := strings.CutPrefix(what, "membrane 256³ to 1e-6, "); ok {
			membrane.set(method, cluster, cell)
		}
	}
	return published.markdown("64 machines, 256³: seconds of the published run (faster by)") + "\n" +
		membrane.markdown("64 machines, membrane, 256³ to 1e-6: seconds (faster by)")
}

// efficiencyTable returns the efficiencies of a cluster, grid and scheme by the number of machines.
func efficiencyTable(of *Record) string {
	var g grid
	for i := range of.Results {
		var cluster, side, scheme string
		var machines int
		name := strings.ReplaceAll(of.Results[i].Name, ",", "")
		_, err := fmt.Sscanf(name, "%s %s %d machines boxes overlap Richardson %s", &cluster, &side, &machines, &scheme)
		if err == nil {
			g.set(fmt.Sprintf("%s, %s, %s", cluster, side, scheme), fmt.Sprint(machines), number(of.Results[i].Value)+" %")
		}
	}
	return g.markdown("efficiency of Richardson on machines")
}

// faultTable returns the seconds of the schemes with each fault, and what a synchronous run takes by what each other takes.
func faultTable(of *Record) string {
	var g grid
	for i := range of.Results {
		r := &of.Results[i]
		at := strings.LastIndex(r.Name, ": ")
		cell := number(r.Value)
		if len(r.Peers) > 0 {
			cell += fmt.Sprintf(" (%.2g)", 1/r.Peers[0].Ratio)
		}
		g.set(r.Name[:at], r.Name[at+2:], cell)
	}
	return g.markdown("27 machines, 10 Gbit/s: seconds until the tolerance is met (faster than sync by)")
}

// localhostTable returns the predicted and the real time of runs, and the error of the prediction.
func localhostTable(of *Record) string {
	var g grid
	for i := range of.Results {
		r := &of.Results[i]
		scheme, rest, _ := strings.Cut(r.Name, ", ")
		peers, what, predicted := strings.Cut(rest, ": predicted ")
		if predicted && len(r.Peers) > 0 {
			cell := fmt.Sprintf("%s, %s (%+.0f %%)", number(r.Value), number(r.Peers[0].Value), math.Round(100*(r.Peers[0].Ratio-1))+0)
			g.set(peers, scheme+": "+what, cell)
		}
	}
	return g.markdown("predicted, real (error); seconds, sweeps")
}

// mapSentence returns the ratios of the map at three of its corners and the smallest one.
func mapSentence(of *Record) string {
	least := 0.0
	ratios := map[string]float64{}
	for i := range of.Results {
		if r := &of.Results[i]; len(r.Peers) > 0 {
			ratios[r.Name] = r.Peers[0].Ratio
			if least == 0 || r.Peers[0].Ratio < least {
				least = r.Peers[0].Ratio
			}
		}
	}
	at := func(latency string, slowdown int) float64 {
		return ratios[fmt.Sprintf("latency %s, one machine of 27 %d times slower: synchronous", latency, slowdown)]
	}
	return fmt.Sprintf("Synchronous / asynchronous time: %.2f with equal machines and a latency of 10 µs, %.1f with one machine 8 times\n"+
		"slower there, %.1f with equal machines and a latency of 20 ms; %.2f at least.\n",
		at("10µs", 1), at("10µs", 8), at("20ms", 1), least)
}
