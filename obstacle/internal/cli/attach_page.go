package cli

import (
	"cmp"
	"fmt"
	"net"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// attached shows a run that obstacle attach follows.
type attached struct {
	pages  *pages // nil: nothing is shown
	flags  string // of the command that shows the run again
	status launch.Status
	seen   *observed // nil before the first report
	said   string    // newest line about peers that do not reach each other
}

// sayOnce says which peers do not reach each other.
func (a *app) sayOnce(s *attached, ranks []rendezvous.RankView) {
	for _, k := range ranks {
		if k.Severed != "" && k.Severed != s.said {
			s.said = k.Severed
			a.say(k.Severed)
		}
	}
}

// view begins to show the run with the first report of its leader.
func (s *attached) view(v *rendezvous.View) {
	if s.pages == nil || s.seen != nil || v.Spec == nil {
		return
	}
	w := v.Spec
	peers := w.Partition.Peers()
	info := monitor.Info{
		Label:   fmt.Sprintf("%s, %s, %s, attached", w.Scheme, w.Method.Name, countPeers(peers)),
		Problem: w.Problem, Scheme: w.Scheme, Method: w.Method.Name, N: w.N[:launch.Dimension(w.N)],
		Points: w.N[0] * w.N[1] * w.N[2], Peers: peers, Steps: v.Steps, Tolerance: w.Tolerance,
		Version: build.Version(), Attached: true, Attach: s.flags,
	}
	if !w.Reports {
		info.Silent = "The peers report neither times nor sessions, since the run was started without --http, --metrics, " +
			"--report and --status."
	}
	s.seen = s.pages.follow(info, &s.status)
	s.pages.fields.wait(s.seen.id, "obstacle attach gets them with the answer")
}

// answered states that the answer has arrived.
func (s *attached) answered(q *request, w *work) {
	if s.seen != nil {
		s.seen.work, q.observed = w, s.seen
		s.status.Enter(launch.Judging)
	}
}

// again returns the flags with which obstacle attach shows a run as these pages do. On nil there is no page.
func (p *pages) again(secretFile string) string {
	out := "--secret-file " + spelling.Word(cmp.Or(secretFile, "FILE"))
	if p != nil && p.at != "" {
		out += " --http " + spelling.Word(p.at)
		switch {
		case p.flags.tokenFile != "":
			out += " --http-token-file " + spelling.Word(p.flags.tokenFile)
		case p.flags.token == tokenNone:
			out += " --http-token none"
		}
	}
	return out
}

// servedAt returns the address under which the flag of a server is given again: its host, and the port that it has.
func servedAt(flag string, at net.Addr) string {
	host, port, _ := net.SplitHostPort(flag)
	if t, is := at.(*net.TCPAddr); is {
		port = fmt.Sprint(t.Port)
	}
	return net.JoinHostPort(host, port)
}
