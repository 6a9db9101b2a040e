package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/simulate"
)

// partsFlags adds the flags of parts of a simulated run, which move between machines.
func (s *simulation) partsFlags(f *pflag.FlagSet, q *request) {
	f.IntVar(&q.Parts, "parts", 1, "number of parts of the grid that each machine relaxes, one after the other")
	f.StringVar(&q.balance, "balance", "off", "on: move parts from slow machines to fast ones during the run (see --parts)")
	f.StringArrayVar(&s.join, "join", nil,
		"TIME: a further machine of the model joins at a time since the first relaxation, such as 1.5s, and takes parts of "+
			"others; repeatable")
	f.StringArrayVar(&s.leave, "leave", nil,
		"MACHINE@TIME: a machine is asked to leave at a time since the first relaxation, such as 3@1.5s, and its parts move "+
			"to others; repeatable")
}

// checkParts validates the flags of parts of a simulated run.
func (s *simulation) checkParts(q *request) error {
	off := q.Recover == rendezvous.RecoverOff
	switch {
	case q.balance == "on" && q.Parts <= 1:
		return usage("--balance on with --parts %d: a simulated run moves whole parts; give --parts 2 or more", q.Parts)
	case off && len(s.join)+len(s.leave) > 0:
		return usage("--join and --leave with --recover off: parts move as after a loss, so leave out --recover off")
	}
	return q.checkParts()
}

// elastic returns when machines join a run of so many, and leave it.
func (s *simulation) elastic(machines int) (joins []time.Duration, leaves []simulate.Leave, err error) {
	for _, v := range s.join {
		at, err := time.ParseDuration(v)
		if err != nil || at < 0 {
			return nil, nil, usage("--join %s: want a time of 0s or more, such as 1.5s", v)
		}
		joins = append(joins, at)
	}
	for _, v := range s.leave {
		machine, at, found := strings.Cut(v, "@")
		var l simulate.Leave
		if l.Host, err = strconv.Atoi(machine); !found || err != nil || l.Host < 0 || l.Host >= machines+len(joins) {
			return nil, nil, usage("--leave %s: want MACHINE@TIME, such as 3@1.5s, with a machine of 0 to %d", v,
				machines+len(joins)-1)
		}
		if l.At, err = time.ParseDuration(at); err != nil || l.At < 0 {
			return nil, nil, usage("--leave %s: want a time of 0s or more after the @, such as 1.5s", v)
		}
		leaves = append(leaves, l)
	}
	return joins, leaves, nil
}
