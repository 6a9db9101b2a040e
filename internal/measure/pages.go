package measure

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// headlines are the sections of docs/performance.md, with the parts and results in their tables. A name that ends with … is
// the beginning of a result's name.
var headlines = map[string][][2]string{
	"numerics": {
		{"petsc", "255³ to 1e-6 by multigrid: time"},
		{"petsc", "255³ to 1e-6 by multigrid: processor time of the process"},
		{"petsc", "255³ to 1e-6 by multigrid: peak memory"},
		{"kernels", "sweep, 1×"},
		{"kernels", "time-tiled sweep, 2×"},
		{"memory", "sync, 256³ on two peers"},
		{"speedup", "sync, 128³, two peers over shared memory"},
		{"speedup", "async, 128³, two peers over shared memory"},
		{"parts", "one of two peers 5 × slower, synchronous, 96³: parts that move"},
	},
	"schemes": {
		{"best", "64³, 16 peers, one 5 times slower: best synchronous method, …"},
		{"best", "128³, two sites, round trip 20 ms, 2 peers each: best synchronous method, …"},
		{"schemes", "64³, 16 peers, one in the middle 5 times slower, Richardson: synchronous, virtual time"},
		{"schemes", "128³, two sites, round trip 20 ms, 2 peers each, to 1e-4, Richardson: synchronous, virtual time"},
		{"faults", "no fault: async"},
		{"faults", "one machine 5 times slower: async"},
		{"faults", "1 % of the frames lost: async"},
		{"faults", "two sites, round trip 18 ms: async"},
		{"faults", "two sites, round trip 18 ms: hybrid"},
		{"schwarz", "64³, 64 peers, overlap 4, coarse grid of 1/64 of the points: exchanges"},
	},
	"transport": {
		{"transport", "veth, MTU 1500: one way, 8 B, P2PSAP"},
		{"transport", "veth, MTU 1500: one way, 64 KB, P2PSAP"},
		{"transport", "veth, MTU 1500: one way, 64 KB, P2PSAP, protected"},
		{"transport", "veth, MTU 1500: 64 KB messages, P2PSAP"},
		{"transport", "veth, MTU 1500: 64 KB messages, P2PSAP, protected"},
		{"transport", "veth, MTU 1500: processor of the sender at 1 GB/s, P2PSAP"},
		{"transport", "loopback: one way, 8 B, P2PSAP, shared memory"},
		{"transport", "loopback: one way, 64 KB, P2PSAP, shared memory"},
		{"transport", "loopback: 64 KB messages, P2PSAP, shared memory"},
		{"goodput", "session, NewReno, 1 % lost"},
		{"shares", "session, NewReno beside TCP reno: share"},
		{"shares", "session, CUBIC beside TCP cubic: share"},
		{"age", "device queue of 1.5 MB (1000 packets): median age"},
	},
	"survival": {
		{"survive", "asynchronous, 96³: time with a loss"},
		{"survive", "synchronous, 72³: time with a loss"},
		{"survive", "multigrid, 191³: time with a loss"},
		{"survive", "of these runs solved, with exit code 0"},
		{"survive", "synchronous, 64³ a peer, a new process: from a loss to relaxation"},
		{"survive", "synchronous, a host is silent: from the cut to relaxation"},
		{"survive", "asynchronous, 96³: time without the launcher"},
		{"survive", "no loss, 64³: time with --recover local"},
		{"survive", "checkpoints, 72³: every minute, the default"},
		{"copies", "synchronous, 96³: time with a loss"},
		{"copies", "no loss, 96³: time with --recover exact"},
		{"losses", "10 of 16 peers killed, 256³, async: time"},
	},
	"simulation": {
		{"published", "median of their errors"},
		{"localhost", "sync, 2 peers: predicted time"},
		{"localhost", "async, 2 peers: predicted time"},
		{"localhost", "sync, 8 peers: predicted time"},
		{"localhost", "async, 2 peers, 1ms and 200 Mbit/s apart: predicted time"},
		{"whatif", "32³ for 64³, 64 machines, async: the same, old values costing half"},
		{"efficiency", "graphene-eth, 256³, 1024 machines, boxes, overlap, Richardson sync"},
		{"efficiency", "graphene-eth, 256³, 1024 machines, boxes, overlap, Richardson async"},
		{"simulator", "4096 peers, 64³ for 1024³, 12 sweeps: time, connecting included"},
		{"simulator", "64 peers, blocks of 4³ for 256³, async: segments per second of processor time"},
	},
}

const headlineHeader = "| what | ours | peer or limit | ratio | target | record |\n|---|---|---|---|---|---|\n"

// headlineTable returns the table of some results: of each from the newest record that has it. A sentence below names the
// parts whose sources have changed since.
func headlineTable(now *sources, records map[string][]*Record, rows [][2]string) (string, error) {
	var b strings.Builder
	var older []string
	b.WriteString(headlineHeader)
	for _, row := range rows {
		of, r := newest(records[row[0]], row[1])
		if r == nil {
			return "", fmt.Errorf("no record of part %s has %q, a row of docs/performance.md", row[0], row[1])
		}
		value, peers, ratio := r.values()
		b.WriteString("| " + strings.Join([]string{r.Name, value, peers, ratio, r.goal(), of.cite()}, " | ") + " |\n")
		changed, err := of.changedSince(now)
		if err != nil {
			return "", err
		}
		if len(changed) > 0 && !slices.Contains(older, row[0]) {
			older = append(older, row[0])
		}
	}
	if len(older) > 0 {
		fmt.Fprintf(&b, "\nMeasured before changes of the code that they measure: %s.\n", strings.Join(older, ", "))
	}
	return b.String(), nil
}

// newest returns the first of the records with a result of a name, and that result.
func newest(records []*Record, name string) (*Record, *Result) {
	for _, of := range records {
		for i := range of.Results {
			if of.Results[i].is(name) {
				return of, &of.Results[i]
			}
		}
	}
	return nil, nil
}

// is reports whether a result has a name, or begins with what is before the … at the end of it.
func (r *Result) is(name string) bool {
	beginning, cut := strings.CutSuffix(name, "…")
	return r.Name == name || cut && strings.HasPrefix(r.Name, beginning)
}

// link returns the target of a link from docs to the page of a record's part.
func link(r *Record) string {
	program := filepath.Base(filepath.Dir(r.dir))
	return "../" + program + "/results/" + r.Part + ".md"
}

// pages returns the sections of docs/performance.md, of docs/simulation.md and of the page of each part, which lies beside its records, by file.
func pages(root string) (map[string]map[string]string, error) {
	records, err := readRecords(filepath.Join(root, "bench", "results"), filepath.Join(root, "experiments", "results"))
	if err != nil {
		return nil, err
	}
	now := &sources{root: root}
	front := map[string]string{}
	out := map[string]map[string]string{filepath.Join(root, "docs", "performance.md"): front}
	for section, rows := range headlines {
		if front[section], err = headlineTable(now, records, rows); err != nil {
			return nil, err
		}
	}
	simulation, err := simulatedTables(now, records)
	if err != nil {
		return nil, err
	}
	out[filepath.Join(root, "docs", "simulation.md")] = simulation
	var list []string
	for _, part := range slices.SortedFunc(maps.Keys(records), func(a, b string) int {
		return cmp.Or(cmp.Compare(records[a][0].dir, records[b][0].dir), cmp.Compare(a, b))
	}) {
		page := filepath.Join(records[part][0].dir, part+".md")
		out[page] = map[string]string{part: table(records[part])}
		title, err := titleOf(page)
		if err != nil {
			return nil, err
		}
		list = append(list, "["+title+"]("+link(records[part][0])+")")
	}
	front["parts"] = strings.Join(list, ",\n") + ".\n"
	return out, nil
}

// titleOf returns the first heading of a page.
func titleOf(page string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	title, found := strings.CutPrefix(first, "# ")
	if !found {
		return "", fmt.Errorf("%s: no title in the first line", page)
	}
	return title, nil
}

// Report writes the tables of docs/performance.md, of docs/simulation.md and of the pages of all parts from the records of the module at root.
func Report(root string) error {
	all, err := pages(root)
	if err != nil {
		return err
	}
	for page, sections := range all {
		if err := FillFile(page, sections); err != nil {
			return err
		}
	}
	return nil
}
