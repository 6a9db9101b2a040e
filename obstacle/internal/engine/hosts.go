package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Host is a host of a job.
type Host struct {
	Name  string
	Slots int // number of processes that the job may run there, at least 1
}

// Source returns where the host list of a job is, by its environment: a file, or a list in the syntax of Slurm. Name is
// the variable; it is empty if there is no list.
func Source(env Env) (name, file, list string) {
	for _, name := range []string{"OAR_NODEFILE", "PBS_NODEFILE", "PE_HOSTFILE"} {
		if v, set := env(name); set && v != "" {
			return name, v, ""
		}
	}
	if v, set := env("SLURM_JOB_NODELIST"); set && v != "" {
		return "SLURM_JOB_NODELIST", "", v
	}
	return "", "", ""
}

// Listed returns the hosts of a list in the syntax of Slurm with the processes for each host as SLURM_TASKS_PER_NODE
// states them, such as 2(x3),1. An empty second list means one for each host.
func Listed(list, tasks string) ([]Host, error) {
	names, err := ExpandNodes(list)
	if err != nil {
		return nil, err
	}
	hosts := make([]Host, len(names))
	slots, err := perNode(tasks, len(names))
	for i := range hosts {
		hosts[i] = Host{names[i], 1}
		if i < len(slots) {
			hosts[i].Slots = slots[i]
		}
	}
	return hosts, err
}

// perNode expands a list such as 2(x3),1.
func perNode(s string, nodes int) (out []int, err error) {
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		count, times, repeated := strings.Cut(part, "(x")
		n, err := strconv.Atoi(count)
		k := 1
		if repeated && err == nil {
			k, err = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || n < 1 || n > most || k < 1 || k > nodes-len(out) {
			return nil, fmt.Errorf("%.100q: want numbers of tasks such as 2(x3),1", s)
		}
		out = append(out, slices.Repeat([]int{n}, k)...)
	}
	return out, nil
}

// ParseHosts reads a host file. A line holds the name or address of a host, and optionally a number of processes, in
// the syntax of Open MPI (node slots=4), of MPICH (node:4) or of Grid Engine (node 4 queue range). Repeated lines of a
// host add up, as in the files of PBS and OAR. # begins a comment.
func ParseHosts(text string) ([]Host, error) {
	var hosts []Host
	for i, line := range slices.Collect(strings.SplitSeq(text, "\n")) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		h, err := parseHost(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		at := slices.IndexFunc(hosts, func(known Host) bool { return known.Name == h.Name })
		switch {
		case at >= 0:
			hosts[at].Slots = min(hosts[at].Slots+h.Slots, most)
		case len(hosts) == most:
			return nil, fmt.Errorf("line %d: more than %d hosts", i+1, most)
		default:
			hosts = append(hosts, h)
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("it names no host; write one name or address per line")
	}
	return hosts, nil
}

func parseHost(fields []string) (Host, error) {
	h := Host{Name: fields[0], Slots: 1}
	slots := ""
	if name, n, found := strings.Cut(h.Name, ":"); found && !strings.Contains(n, ":") { // else an IPv6 address
		h.Name, slots = name, n
	}
	for i, f := range fields[1:] {
		if v, found := strings.CutPrefix(f, "slots="); found {
			slots = v
		} else if i == 0 && f[0] >= '0' && f[0] <= '9' {
			slots = f
		}
	}
	if !validHost(h.Name) {
		return h, fmt.Errorf("%q is not the name or address of a host", h.Name)
	}
	if slots != "" {
		n, err := strconv.Atoi(slots)
		if err != nil || n < 1 || n > most {
			return h, fmt.Errorf("host %s: %q is not a number of processes", h.Name, slots)
		}
		h.Slots = n
	}
	return h, nil
}

// validHost reports whether a word can be given to ssh as a host: it must not be taken for an option.
func validHost(s string) bool {
	ok := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-:@%", c)
	}
	return s != "" && s[0] != '-' && len(s) <= 255 && !strings.ContainsFunc(s, func(c rune) bool { return !ok(c) })
}

// Bounds of a list in the syntax of Slurm.
const (
	maxList   = 1 << 20 // bytes
	maxDigits = 20      // of a number, with its leading zeros
)

// ExpandNodes returns the hosts of a list in the syntax of Slurm, such as n[1-3,07],login, in its order.
func ExpandNodes(list string) ([]string, error) {
	if len(list) > maxList {
		return nil, fmt.Errorf("host list %.100q…: %d bytes; at most %d are allowed", list, len(list), maxList)
	}
	var hosts []string
	for _, item := range splitOutside(list) {
		names, err := expand(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("host list %.100q: %w", list, err)
		}
		if hosts = append(hosts, names...); len(hosts) > most {
			return nil, fmt.Errorf("host list %.100q: more than %d hosts", list, most)
		}
	}
	for _, h := range hosts {
		if !validHost(h) {
			return nil, fmt.Errorf("host list %.100q: %.100q is not the name or address of a host", list, h)
		}
	}
	return hosts, nil
}

// splitOutside splits at the commas outside brackets.
func splitOutside(s string) (out []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// expand expands the first brackets of a name, and those after it.
func expand(s string) ([]string, error) {
	before, rest, found := strings.Cut(s, "[")
	if !found {
		if strings.Contains(s, "]") {
			return nil, fmt.Errorf("%.100q: ] without [", s)
		}
		return []string{s}, nil
	}
	ranges, after, found := strings.Cut(rest, "]")
	if !found {
		return nil, fmt.Errorf("%.100q: [ without ]", s)
	}
	tails, err := expand(after)
	if err != nil {
		return nil, err
	}
	var out []string
	for r := range strings.SplitSeq(ranges, ",") {
		low, high, is := strings.Cut(r, "-")
		if !is {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || a < 0 || b < a || len(low) > maxDigits {
			return nil, fmt.Errorf("%.100q: %.100q is not a range of numbers", s, r)
		}
		if b-a >= (most-len(out))/len(tails) {
			return nil, fmt.Errorf("%.100q: more than %d hosts", s, most)
		}
		for i := range b - a + 1 {
			for _, tail := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", before, len(low), a+i, tail))
			}
		}
	}
	return out, nil
}
