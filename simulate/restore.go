package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// startTime is what a new process takes to start.
const startTime = 30 * time.Millisecond

// Sizes of what the launcher sends to a peer in an epoch: its work, and an entry of the list of peers.
const (
	workBytes   = 750
	memberBytes = 100
)

// coarsest bounds the tolerance of a repair.
const coarsest = 1e-2

// held reports whether somebody has values of a rank's block at an instant: the rank, or the process that has taken its
// place and has repaired them.
func (e *engine) held(rank int, at microproto.Instant) bool {
	return e.recovery.silentBy[rank] == nil && e.has(rank, at)
}

// has reports whether the process of a rank has values of its block at an instant.
func (e *engine) has(rank int, at microproto.Instant) bool {
	c := &e.recovery
	return !c.given[rank] || c.restored[rank] != nil && c.restoredAt[rank] <= at
}

// solution returns the values of a rank's block: those of its peer, or the repaired ones.
func (e *engine) solution(rank int) []float64 {
	if u := e.recovery.restored[rank]; u != nil {
		return u
	}
	return e.hosts[rank].values()
}

// repair repairs the blocks that nobody has, and sets when the values are there and when the next epoch begins.
func (e *engine) repair() error {
	c, s := &e.recovery, &e.run.Solver
	var lost []int
	var holes []problem.Box
	for rank := range e.hosts {
		if !e.held(rank, e.now) {
			lost, holes = append(lost, rank), append(holes, s.Partition.Box(iterate.Rank(rank)))
		}
	}
	if len(lost) == len(e.hosts) {
		return fmt.Errorf("simulate: %v after the first relaxation: no peer is left that has values", e.elapsed())
	}
	faces := repair.NewFaces(s.Problem, holes)
	for rank := range e.hosts {
		if box := s.Partition.Box(iterate.Rank(rank)); !slices.Contains(lost, rank) && len(repair.Shell(s.Problem, holes, box)) > 0 {
			if err := faces.Add(box, repair.Pack(s.Problem, holes, box, e.solution(rank))); err != nil {
				return err
			}
		}
	}
	begins, latency := e.repairBegins(lost, holes)
	listed := begins // the launcher begins to send their work to the others
	for _, group := range repair.Groups(holes) {
		fixed, err := repair.Solve(repair.Hole{
			Problem: s.Problem, Partition: s.Partition, Boxes: group, Value: faces.Value, New: cmp.Or(e.run.Methods, solver.Methods()).New,
			Tolerance: e.repairTolerance(),
		})
		if err != nil && fixed.Points == 0 {
			return fmt.Errorf("simulate: the blocks of ranks %v cannot be repaired: %w", lost, err)
		}
		unbound := repair.CheckBound(s.Problem, group)
		for i, rank := range lost {
			if !slices.Contains(group, holes[i]) {
				continue
			}
			took := e.repairTime(rank, &fixed)
			c.restored[rank] = fixed.Values(holes[i])
			c.restoredAt[rank] = begins.Add(took + latency) // the launcher knows of it
			listed = max(listed, c.restoredAt[rank])
			for k := range c.losses {
				if l := &c.losses[k]; l.Rank == rank {
					l.Method, l.Iterates, l.Residual = fixed.Method, fixed.Sweeps, fixed.Residual
					l.Repair, l.Unbound = took, unbound
				}
			}
		}
	}
	c.connecting = listed.Add(latency + e.newsTime(lost))
	c.ready = c.connecting.Add(time.Duration(e.began))
	return nil
}

// repairBegins returns when the processes that take the places of lost ranks have the values around the holes, and the
// largest latency to the launcher, on the machine of rank 0. It asks the survivors for the values, and sends all of them
// to each of these processes, with the list of all peers.
func (e *engine) repairBegins(lost []int, holes []problem.Box) (at microproto.Instant, latency time.Duration) {
	latency = e.farthest()
	points := 0
	for _, b := range repair.Shell(e.run.Solver.Problem, holes, problem.Box{Hi: e.run.Solver.Problem.N}) {
		points += b.Points()
	}
	face, _ := e.run.scale()
	transfer := 8 * face * float64(points) / e.launcherRate()
	at = e.replaced(e.now.Add(2*latency+seconds(transfer)), latency)
	return at.Add(latency + seconds(transfer*float64(len(lost))) + e.listsTime(len(lost))), latency
}

// farthest returns the largest latency between the launcher and a rank.
func (e *engine) farthest() (latency time.Duration) {
	for rank := range e.hosts {
		latency = max(latency, e.toLeader(rank))
	}
	return latency
}

// replaced returns when new processes have reported to the launcher, at least at.
func (e *engine) replaced(at microproto.Instant, latency time.Duration) microproto.Instant {
	for i := range e.recovery.losses {
		if l := &e.recovery.losses[i]; !l.Spare {
			at = max(at, e.instant(l.Noticed).Add(startTime+latency))
		}
	}
	return at
}

// listsTime returns how long the launcher sends the list of all peers, with their work, to so many new ones.
func (e *engine) listsTime(peers int) time.Duration {
	return seconds(float64(peers) * (workBytes + memberBytes*float64(len(e.hosts))) / e.launcherRate())
}

// newsTime returns how long the launcher sends their work to the survivors, with the entries of the peers that they
// connect to and of those that are new.
func (e *engine) newsTime(lost []int) time.Duration {
	bytes := 0
	for rank, m := range e.hosts {
		if !slices.Contains(lost, rank) {
			bytes += workBytes + memberBytes*(len(m.peer.Links())+len(lost))
		}
	}
	return seconds(float64(bytes) / e.launcherRate())
}

// launcherRate returns the rate of the line of the process that leads.
func (e *engine) launcherRate() float64 {
	return e.model.Networks[e.model.Hosts[e.run.resumed.leads()].Network].Rate
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// scale returns for how many points of a face and of a block one point stands.
func (r *Config) scale() (face, volume float64) {
	side := float64(max(1, r.Scale))
	face, volume = 1, 1
	for a := range r.Solver.Problem.Dimension {
		if volume *= side; a > 0 {
			face *= side
		}
	}
	return face, volume
}

// repairTime returns how long one thread of a rank's machine takes to solve a hole.
func (e *engine) repairTime(rank int, r *repair.Repaired) time.Duration {
	_, volume := e.run.scale()
	return seconds(r.Work * volume * float64(r.Box.Points()) * e.hosts[rank].perPoint / 1e9)
}

// repairTolerance returns the tolerance of a repair. There is no gain from a residual far below that of the run.
func (e *engine) repairTolerance() float64 {
	if now := e.hosts[0].peer.Progress().Residual; now < coarsest {
		return max(e.run.Solver.Tolerance, now)
	}
	return coarsest
}

// nextEpoch returns the configuration of the next epoch.
func (e *engine) nextEpoch() *Config {
	e.moveParts()
	r := *e.run
	s, newest := &r.resumed, iterate.Progress{}
	s.starts = make([][]float64, len(e.hosts))
	for rank, m := range e.hosts {
		if s.series != nil {
			s.starts[rank] = s.series.block(r.Solver.Partition.Box(iterate.Rank(rank)))
			continue // its step begins again
		}
		if s.copies != nil {
			break
		}
		s.starts[rank] = e.start(rank)
		if at := m.peer.Progress(); !e.recovery.given[rank] && at.Sweep >= newest.Sweep {
			newest = at
		}
	}
	s.epoch++
	s.sweeps = e.completeSweeps()
	s.at, s.left = e.since(e.recovery.connecting), e.elapsed()
	if s.copies != nil {
		s.copies.resume(s)
		s.sweeps = e.sweepsOf(s.points)
		return &r
	}
	r.Solver = repair.Next(r.Solver, r.Solver.Partition, nil, newest)
	if s.series != nil {
		r.Solver.After = s.series.done
	}
	return &r
}
