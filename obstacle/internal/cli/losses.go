package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// lossFlags adds the flags that lose peers of a simulated run.
func (s *simulation) lossFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.lose, "lose", nil,
		"RANK@TIME: the machine of a peer falls silent at a time since the first relaxation, such as 3@1.5s; repeatable")
	f.StringArrayVar(&s.kill, "kill", nil, "RANK@TIME: a peer is killed at a time since the first relaxation; repeatable")
}

// losses returns the events of --lose and --kill in a run of so many machines.
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
			if e.Rank, err = strconv.Atoi(rank); err != nil || e.Rank < 0 || e.Rank >= machines {
				return nil, usage("--%s %s: want a rank of 0 to %d before the @", f.name, v, machines-1)
			}
			if e.At, err = time.ParseDuration(at); err != nil || e.At < 0 {
				return nil, usage("--%s %s: want a time of 0s or more after the @, such as 1.5s", f.name, v)
			}
			events = append(events, e)
		}
	}
	return events, nil
}

// recovery returns how a simulated run recovers; nil: not at all.
func (q *request) recovery() *simulate.Recovery {
	exact := q.recover == launch.RecoverExact
	if q.recover != launch.RecoverLocal && !exact {
		return nil
	}
	return &simulate.Recovery{Suspect: q.suspect, Spares: q.spares, Exact: exact}
}
