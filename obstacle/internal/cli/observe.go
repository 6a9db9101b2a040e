package cli

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// Intervals at which the state of a run is copied to the monitor.
const (
	observeEvery     = 250 * time.Millisecond
	observeEveryMany = 2 * time.Second // with more than observeMany peers
	observeMany      = 256
)

// observed is a run that a monitor follows. Its methods do nothing on nil.
type observed struct {
	id     int
	to     *pages
	work   *work
	peers  int
	status *launch.Status
	field  *liveField
	stop   func() // ends the copies; once

	mu     sync.Mutex
	marks  []monitor.Mark
	losses map[int]int // indices of marks by index of the loss
	moves  int         // that are marked
}

// observe begins to follow a real run. It returns nil on nil.
func (p *pages) observe(q *request, w *work, label string) *observed {
	if p == nil {
		return nil
	}
	info := monitor.Info{
		Label:   cmp.Or(label, fmt.Sprintf("%s, %s, %s", w.scheme.Name(), w.method.Name, countPeers(w.partition.Peers()))),
		Problem: w.spec.Name(), Scheme: w.scheme.Name(), Method: w.method.Name, N: w.problem.N[:w.problem.Dimension],
		Points: w.problem.Points(), Peers: w.partition.Peers(), Steps: w.problem.Steps(), Tolerance: q.Tolerance,
		Version: build.Version(),
	}
	if q.rendezvous != "" {
		info.Attach = p.again(q.secretFile)
	}
	o := p.follow(info, &launch.Status{})
	o.work = w
	o.field = p.fields.begin(o.id, w.problem)
	return o
}

// follow copies the status of a run to the monitor until stop is called.
func (p *pages) follow(info monitor.Info, status *launch.Status) *observed {
	o := &observed{to: p, status: status, peers: info.Peers, losses: map[int]int{}}
	o.id = p.Begin(info)
	done := make(chan struct{})
	var copying sync.WaitGroup
	copying.Go(func() {
		interval := observeEvery
		if o.peers > observeMany {
			interval = observeEveryMany
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				o.copy()
			case <-done:
				o.copy()
				return
			}
		}
	})
	o.stop = sync.OnceFunc(func() { close(done); copying.Wait() })
	return o
}

// countPeers returns a number of peers in words.
func countPeers(n int) string {
	if n == 1 {
		return "1 peer"
	}
	return fmt.Sprintf("%d peers", n)
}

// watch passes on the progress of rank 0.
func (o *observed) watch(p launch.Progress) {
	if o != nil {
		o.to.Add(o.id, progressOf(p))
	}
}

func progressOf(p launch.Progress) monitor.Progress {
	return monitor.Progress{Elapsed: p.Elapsed, Step: p.Step, Sweep: float64(p.Sweep), Residual: p.Residual}
}

// copy copies the state of the run to the monitor.
func (o *observed) copy() {
	s := o.status.State()
	o.to.Add(o.id, append(eventsOf(&s, o.peers), o.marked(&s))...)
}

// eventsOf describes the state of a run of n peers, but for what marked does.
func eventsOf(s *launch.State, n int) []monitor.Event {
	peers := make(monitor.Peers, n)
	var reads monitor.Reads
	var ages monitor.Ages
	var sessions monitor.Sessions
	traffic := report.Traffic{Traffic: s.Gone}
	for rank := range n {
		a := s.Accounts[rank]
		peers[rank] = monitor.Peer{
			Sweep: float64(max(a.Sweep, s.Sweeps[rank])), Relaxing: a.Relaxing, Waiting: a.Waiting,
			Protocol: max(0, a.Seconds-a.Relaxing-a.Waiting), Lost: s.Lost[rank],
		}
		for _, r := range a.Reads {
			if r.Faces == 0 {
				continue
			}
			reads = append(reads, monitor.Read{
				By: rank, Of: r.Rank, Faces: r.Faces, Mean: float64(r.Sum) / float64(r.Faces), Newest: float64(r.Newest),
			})
			ages.Sum += float64(r.Sum)
			for i, count := range r.Ages[:min(len(r.Ages), len(ages.Counts))] {
				ages.Counts[i] += count
			}
		}
		traffic.Add(s.Sessions[rank], s.Former[rank])
		for _, one := range s.Sessions[rank] {
			sessions.All = append(sessions.All, sessionOf(rank, &one))
		}
	}
	sessions.Traffic = monitor.Traffic{
		Messages: traffic.Messages, Bytes: traffic.Bytes, Lost: traffic.MessagesLost(), Segments: traffic.Segments,
		Retransmitted: traffic.Retransmitted, Replaced: traffic.Replaced,
	}
	return []monitor.Event{
		monitor.Phase(s.Phase.String()), progressOf(s.Progress), peers, reads, ages, sessions, places(s),
		monitor.Epoch(s.Epoch), monitor.Lead{
			Term: s.Term.Number, Leader: rendezvous.FirstWay(s.Term.Leader), Keepers: rendezvous.FirstWays(s.Term.Keepers),
		},
	}
}

func sessionOf(rank int, s *rendezvous.Session) monitor.Session {
	rtt := s.PathRTT
	if rtt == 0 {
		rtt = s.RTTSeconds
	}
	return monitor.Session{
		From: rank, To: s.Peer, Name: s.Name, Mode: s.Mode, Locality: s.Locality, Network: s.Network, PathDown: s.PathDown,
		FrameBytes: s.FrameBytes, Column: s.Column,
		Composition: s.Composition, Protected: len(s.Protection) > 0, Epoch: s.Epoch, Changes: int(s.Changes),
		Moves: int(s.Moves), RTT: nullable.Time(rtt), Loss: s.PathLoss, Messages: s.MessagesSent, Bytes: s.BytesSent,
		Retransmitted: s.Retransmitted,
	}
}

func places(s *launch.State) monitor.Places {
	out := monitor.Places{}
	for i, m := range s.Members {
		out = append(out, monitor.Place{
			Process: fmt.Sprintf("pid %d", m.Pid), Host: m.Host, Cluster: m.Cluster, Lo: s.Boxes[i].Lo, Hi: s.Boxes[i].Hi,
		})
	}
	return out
}

// marked returns the losses and moves in the order in which they became known.
func (o *observed) marked(s *launch.State) monitor.Marks {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range s.Losses {
		l := &s.Losses[i]
		k := monitor.Mark{Kind: monitor.MarkLoss, Rank: l.Rank, At: l.Detected, Took: nullable.NaN(), Text: l.Why}
		if l.Recovered.Known() {
			k.Took = l.Recovered - nullable.Number(l.Detected)
		}
		if l.By != "" {
			k.Text += "; its part went to " + l.By
		}
		if l.Method != "" {
			k.Text += ", repaired by " + l.Method
		}
		at, known := o.losses[i]
		if !known {
			at = len(o.marks)
			o.losses[i], o.marks = at, append(o.marks, k)
		}
		o.marks[at] = k
	}
	for _, m := range s.Moves[min(o.moves, len(s.Moves)):] {
		o.marks = append(o.marks, monitor.Mark{
			Kind: monitor.MarkMove, Rank: m.Rank, At: m.At, Took: nullable.Number(m.Seconds),
			Text: "from " + m.From + " to " + m.To,
		})
		o.moves++
	}
	return slices.Clone(o.marks)
}

// end shows the answer.
func (o *observed) end(s *report.Solution, out *launch.Outcome) {
	if o == nil {
		return
	}
	o.stop()
	o.to.fields.keep(o.id, o.work.problem.AtStep(out.Steps), out.U, float64(s.Seconds))
	sweep := 0.0
	if len(s.Sweeps) > 0 {
		sweep = float64(s.Sweeps[0])
	}
	o.to.Add(o.id, monitor.End{
		Reason: s.Reason, Failure: s.Failure, Converged: s.Converged, Elapsed: float64(s.Seconds), Sweep: sweep,
		Residual: float64(s.RelativeResidual), Contact: s.ContactPoints,
	})
}

// fail shows that the run has failed, unless it has ended.
func (o *observed) fail(why error) {
	if o == nil {
		return
	}
	o.stop()
	o.to.fields.keep(o.id, nil, nil, 0)
	p := o.status.State().Progress
	o.to.Add(o.id, monitor.End{
		Reason: launch.Failed, Failure: why.Error(), Elapsed: p.Elapsed.Seconds(), Sweep: float64(p.Sweep),
		Residual: p.Residual, Contact: nullable.Unknown,
	})
}
