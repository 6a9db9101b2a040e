package runner

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Reads counts the faces of one neighbour that sweeps have read, by age.
type Reads struct {
	Rank   iterate.Rank
	Faces  uint64
	Sum    uint64 // of the ages, in sweeps of this peer
	Newest int    // age of the face read last
	Ages   iterate.AgeCounts
}

// countReads counts the ages of the faces that the sweep that begins will read.
func (r *Runner) countReads() {
	own := r.peer.Outcome().Iterate
	step := r.peer.Progress().Step
	at := 0
	for _, n := range r.exchange.Neighbours() {
		if len(n.Slots) == 0 {
			continue
		}
		if at == len(r.reads) {
			r.reads = append(r.reads, Reads{Rank: n.Rank})
		}
		c, age := &r.reads[at], 0
		at++
		// A face may be of the next time step.
		if of, _, label := iterate.UnpackLabel(n.Newest()); label < own && of <= step {
			age = int(own - label)
		}
		c.Ages[iterate.AgeBucket(age)]++
		c.Faces, c.Sum, c.Newest = c.Faces+1, c.Sum+uint64(age), age
	}
}

// report calls Config.Progress.
func (r *Runner) report(now time.Duration) {
	p := r.peer.Progress()
	elapsed := time.Duration(0)
	if r.first >= 0 {
		elapsed = now - r.first
	}
	r.config.Progress(Progress{
		Elapsed: elapsed, Step: p.Step, Sweep: p.Sweep, Residual: p.Residual, Relaxed: r.relaxed, Busy: r.busy,
		Waiting: r.waiting, Reads: slices.Clone(r.reads),
	})
}
