package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// lossFlags adds the flags that lose processes of a simulated run, and those that cut its network.
func (s *simulation) lossFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.lose, "lose", nil,
		"RANK@TIME: the machine of a peer falls silent at a time since the first relaxation, such as 3@1.5s; "+
			"launcher@TIME: that of the launcher; repeatable")
	f.StringArrayVar(&s.kill, "kill", nil,
		"RANK@TIME, launcher@TIME: a peer or the launcher is killed at a time since the first relaxation; repeatable")
	f.StringArrayVar(&s.cut, "cut", nil,
		"RANKS@FROM-TO: nothing passes between the machines of these ranks and all others from one time to another, such "+
			"as 2,3@2s-5s or launcher,0-3@2s (for good); repeatable")
	f.IntVar(&s.keepers, "keepers", 0,
		"number of processes, the launcher included, that agree on who leads the run: 1, 3 or 5 (0: 3)")
}

// launcherName stands for the launcher in --lose, --kill and --cut.
const launcherName = "launcher"

// losses returns the events of --lose, --kill and --cut in a run of so many machines.
func (s *simulation) losses(machines int) (events []cluster.Event, err error) {
	for _, f := range []struct {
		name   string
		values []string
		event  cluster.Event
	}{
		{"lose", s.lose, cluster.Event{Lost: true}}, {"kill", s.kill, cluster.Event{Killed: true}},
	} {
		for _, v := range f.values {
			e := f.event
			rank, at, found := strings.Cut(v, "@")
			if !found {
				return nil, usage("--%s %s: want RANK@TIME, such as 3@1.5s", f.name, v)
			}
			if e.Launcher = rank == launcherName; !e.Launcher {
				if e.Rank, err = strconv.Atoi(rank); err != nil || e.Rank < 0 || e.Rank >= machines {
					return nil, usage("--%s %s: want a rank of 0 to %d, or launcher, before the @", f.name, v, machines-1)
				}
			}
			if e.At, err = time.ParseDuration(at); err != nil || e.At < 0 {
				return nil, usage("--%s %s: want a time of 0s or more after the @, such as 1.5s", f.name, v)
			}
			events = append(events, e)
		}
	}
	for _, v := range s.cut {
		e, err := cutOf(v, machines)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// cutOf returns the event of a value of --cut.
func cutOf(v string, machines int) (e cluster.Event, err error) {
	ranks, times, found := strings.Cut(v, "@")
	if !found {
		return e, usage("--cut %s: want RANKS@FROM-TO, such as 2,3@2s-5s", v)
	}
	for _, part := range strings.Split(ranks, ",") {
		if part == launcherName {
			e.Launcher = true
			continue
		}
		low, high, several := strings.Cut(part, "-")
		if !several {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || from < 0 || to >= machines || from > to {
			return e, usage("--cut %s: want ranks of 0 to %d, such as 2,3 or 0-3, or launcher, before the @", v, machines-1)
		}
		for rank := from; rank <= to; rank++ {
			if slices.Contains(e.Apart, rank) {
				return e, usage("--cut %s: rank %d is named twice", v, rank)
			}
			e.Apart = append(e.Apart, rank)
		}
	}
	if e.Launcher && len(e.Apart) == machines {
		return e, usage("--cut %s: no machine is on the other side; leave some out", v)
	}
	from, to, ends := strings.Cut(times, "-")
	if e.At, err = time.ParseDuration(from); err != nil || e.At < 0 {
		return e, usage("--cut %s: want a time of 0s or more after the @, such as 2s", v)
	}
	if !ends {
		return e, nil
	}
	if e.Until, err = time.ParseDuration(to); err != nil || e.Until <= e.At {
		return e, usage("--cut %s: want a time after %v behind the -, such as %v; without one the cut is for good", v, e.At,
			e.At+time.Second)
	}
	return e, nil
}

// recovery returns how a simulated run recovers; nil: not at all.
func (q *request) recovery(s *simulation) *simulate.Recovery {
	exact := q.Recover == rendezvous.RecoverExact
	if q.Recover != rendezvous.RecoverLocal && !exact {
		return nil
	}
	return &simulate.Recovery{
		Suspect: q.Suspect, Spares: q.Spares, Exact: exact, Keepers: cmp.Or(s.keepers, defaultKeepers),
	}
}

// checkKeepers validates --keepers of a simulated run.
func (s *simulation) checkKeepers(q *request) error {
	switch {
	case !slices.Contains([]int{0, 1, 3, 5}, s.keepers):
		return usage("--keepers %d: want 1, 3 or 5, or 0 to have it chosen", s.keepers)
	case s.keepers > 1 && q.Recover == rendezvous.RecoverOff:
		return usage("--keepers %d: the run cannot survive a loss with --recover off", s.keepers)
	}
	return nil
}
