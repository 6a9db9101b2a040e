package cli

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// observedVirtual is a simulated run that a monitor follows. Its methods do nothing on nil.
type observedVirtual struct {
	id    int
	to    *pages
	field *liveField
}

// observeVirtual begins to follow a simulated run. It returns nil on nil.
func (p *pages) observeVirtual(r *virtualRun) *observedVirtual {
	if p == nil {
		return nil
	}
	w := r.work
	o := &observedVirtual{to: p}
	o.id = p.Begin(monitor.Info{
		Label:   fmt.Sprintf("%s%s, %s, simulated", r.label, w.scheme.Name(), countPeers(w.partition.Peers())),
		Problem: w.spec.Name(), Scheme: w.scheme.Name(), Method: w.method.Name, N: w.problem.N[:w.problem.Dimension],
		Points: w.problem.Points(), Peers: w.partition.Peers(), Steps: w.problem.Steps(), Tolerance: r.Solver.Tolerance,
		Simulated: true, Version: build.Version(),
	})
	places := monitor.Places{}
	for rank := range w.partition.Peers() {
		box, machine := w.partition.Box(iterate.Rank(rank)), rank/max(1, r.Parts)
		h := &r.Model.Hosts[machine]
		places = append(places, monitor.Place{
			Process: fmt.Sprintf("machine %d", machine), Host: fmt.Sprintf("%s %d", h.Name, machine),
			Cluster: r.Model.Sites[h.Site],
			Lo:      box.Lo, Hi: box.Hi,
		})
	}
	p.Add(o.id, monitor.Phase(monitor.Solving), places)
	o.field = p.fields.begin(o.id, w.problem)
	return o
}

// watch passes on the progress.
func (o *observedVirtual) watch(p simulate.Progress) {
	if o == nil {
		return
	}
	peers, reads := virtualPeers(p.Ranks())
	o.to.Add(o.id, monitor.Progress{Elapsed: p.Virtual, Step: p.Step, Sweep: p.Sweeps, Residual: p.Residual}, peers, reads)
	if s, due := o.field.Due(); due {
		u := s.Unknown()
		p.Blocks(func(box problem.Box, values func(dst []float64, part problem.Box)) {
			s.Place(u, box, s.Read(box, values))
		})
		o.field.Take(s, u, launch.Progress{Elapsed: p.Virtual, Step: p.Step})
	}
}

func virtualPeers(all []simulate.RankResult) (peers monitor.Peers, reads monitor.Reads) {
	for rank := range all {
		k := &all[rank]
		peers = append(peers, monitor.Peer{
			Sweep: k.Sweeps, Relaxing: k.Relaxing.Seconds(), Waiting: k.Idle.Seconds(), Protocol: k.Protocol.Seconds(),
		})
		for _, r := range k.Reads {
			if r.Faces > 0 {
				reads = append(reads, monitor.Read{
					By: rank, Of: int(r.Rank), Faces: r.Faces, Mean: float64(r.Sum) / float64(r.Faces), Newest: float64(r.Newest),
				})
			}
		}
	}
	return peers, reads
}

// end shows the result of the run.
func (o *observedVirtual) end(r *virtualRun) {
	if o == nil {
		return
	}
	peers, reads := virtualPeers(r.result.Ranks)
	var ages monitor.Ages
	ages.Counts = r.result.Staleness
	for i := range r.result.Ranks {
		for _, read := range r.result.Ranks[i].Reads {
			ages.Sum += float64(read.Sum)
		}
	}
	var marks monitor.Marks
	for _, l := range r.figures.Losses {
		k := monitor.Mark{Kind: monitor.MarkLoss, Rank: l.Rank, At: l.Detected, Took: nullable.NaN(),
			Text: l.Why + "; its part went to " + l.By}
		if l.Recovered.Known() {
			k.Took = l.Recovered - nullable.Number(l.Detected)
		}
		marks = append(marks, k)
	}
	for _, m := range r.figures.Moves {
		marks = append(marks, monitor.Mark{
			Kind: monitor.MarkMove, Rank: m.Rank, At: m.At, Took: nullable.Number(m.Seconds),
			Text: "from " + m.From + " to " + m.To,
		})
	}
	f := &r.figures
	o.to.fields.keep(o.id, r.work.problem.AtStep(len(r.result.Steps)), r.result.U, f.Seconds)
	why := f.Failure
	if why == "" && r.err != nil && !errors.Is(r.err, simulate.ErrCutOff) {
		why = r.err.Error()
	}
	traffic := monitor.Sessions{Traffic: monitor.Traffic{
		Messages: f.Messages, Bytes: f.Bytes, Lost: f.Lost, Segments: f.Segments,
	}}
	o.to.Add(o.id, peers, reads, ages, marks, traffic, monitor.Epoch(len(f.Losses)), monitor.End{
		Reason: f.Reason, Failure: why, Converged: f.Converged, Elapsed: f.Seconds, Sweep: f.Equivalent,
		Residual: float64(f.Residual), Contact: nullable.Unknown,
	})
}
