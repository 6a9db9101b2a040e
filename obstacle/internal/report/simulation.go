package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Subject describes what is simulated, apart from the number of machines.
type Subject struct {
	Problem   string          `json:"problem"`
	N         []int           `json:"n"`      // of the grid that the times refer to
	Points    int             `json:"points"` // of it
	Model     string          `json:"model"`
	Sources   []string        `json:"sources"` // of the parameters of the model
	Method    string          `json:"method"`
	Order     string          `json:"order"`
	StandIn   int             `json:"stand_in"`         // each relaxed point represents that many per axis
	Coarser   int             `json:"coarser_stand_in"` // the second grid of an estimate; 0: none
	Late      bool            `json:"late"`             // --no-overlap
	Tolerance float64         `json:"tolerance"`
	Reference string          `json:"reference"`         // description of t(1)
	Alone     nullable.Number `json:"reference_seconds"` // until the tolerance was met
	Seed      uint64          `json:"seed"`
	Version   string          `json:"version"`
}

// Simulated holds the figures of one simulated run. Times are virtual and the same for the same seed.
type Simulated struct {
	Scheme    string  `json:"scheme"`
	Machines  int     `json:"machines"`
	Partition []int   `json:"partition"` // parts per axis
	Parts     int     `json:"parts"`     // that each machine relaxed at the start
	Seconds   float64 `json:"seconds"`   // from the first relaxation to the verdict
	// Met is the time at which the residual of the whole grid first met the tolerance. The peers detect it later, at
	// Seconds. MetSweeps is the number of sweeps that were complete at Met.
	Met       nullable.Number `json:"met_seconds"`
	MetSweeps nullable.Number `json:"met_sweeps"`
	// Comparable is the time that Efficiency refers to: Met, or with two stand-ins the estimate of it on the full grid, with
	// its bounds.
	Comparable     nullable.Number `json:"comparable_seconds"`
	ComparableLow  nullable.Number `json:"comparable_seconds_low"`
	ComparableHigh nullable.Number `json:"comparable_seconds_high"`
	Efficiency     nullable.Number `json:"efficiency"`
	// Together is the speed of all machines as a multiple of the reference machine's.
	Together        nullable.Number `json:"machines_together"`
	Converged       bool            `json:"converged"`
	Reason          string          `json:"reason"`
	Failure         string          `json:"failure,omitempty"`
	Residual        nullable.Number `json:"relative_residual"` // recomputed from the assembled answer
	Setup           float64         `json:"setup_seconds"`
	Steady          nullable.Number `json:"steady_sweep_seconds"` // of a sweep, median over machines, in the second half
	Equivalent      float64         `json:"sequential_equivalent_sweeps"`
	Fewest          float64         `json:"fewest_sweeps"` // minimum over machines
	Most            float64         `json:"most_sweeps"`
	Relaxing        float64         `json:"relaxing_share"` // of the time of the relaxing threads
	Protocol        float64         `json:"protocol_share"`
	Idle            float64         `json:"idle_share"`
	Messages        uint64          `json:"messages"`
	Segments        uint64          `json:"segments"`
	Bytes           uint64          `json:"bytes"` // of frames
	Lost            uint64          `json:"segments_lost"`
	*SimulatedSteps                 // of a nonstationary problem
	// Losses are those from which the run has recovered or has begun to recover.
	Losses []*launch.Loss `json:"losses"`
	Moves  []launch.Moved `json:"moves"` // parts that went to other machines
	// Leaders have led the run after the loss of its launcher. CutOff are processes without a part in the run any more.
	Leaders []SimulatedLeader `json:"leaders"`
	CutOff  []SimulatedCutOff `json:"cut_off"`
	// Staleness counts the faces that were read, by age in the buckets of iterate.AgeCounts.
	Staleness []uint64        `json:"staleness"`
	MeanAge   nullable.Number `json:"staleness_mean"`
}

// Machine holds the figures of one peer in a simulated run. A machine has one, or several parts of the grid.
type Machine struct {
	Rank     int     `json:"rank"`
	Machine  int     `json:"machine"` // on which it has ended
	Class    string  `json:"class"`
	Site     string  `json:"site"`
	Points   int     `json:"points"`
	Sweeps   float64 `json:"sweeps"`
	Relaxing float64 `json:"relaxing_seconds"`
	Protocol float64 `json:"protocol_seconds"`
	Idle     float64 `json:"idle_seconds"`
	Messages uint64  `json:"messages"`
	Segments uint64  `json:"segments"`
	Bytes    uint64  `json:"bytes"`
	Lost     uint64  `json:"segments_lost"`
}

// Effort is the real cost of a simulation. It differs from run to run.
type Effort struct {
	Events            uint64  `json:"events"`
	Segments          uint64  `json:"segments"`
	WallSeconds       float64 `json:"wall_seconds"`
	SegmentsPerSecond float64 `json:"segments_per_second"`
}

// Simulation is the JSON of simulate.
type Simulation struct {
	Subject
	Simulated
	PerMachine []Machine `json:"per_machine"`
	Simulation Effort    `json:"simulation"`
}

// Figures returns the figures of a run. failure is the reason if it failed, else nil.
func Figures(r *simulate.Result, run *simulate.Config, failure error) Simulated {
	s := Simulated{
		Scheme: run.Solver.Scheme.Name(), Machines: machines(r, run), Seconds: r.Virtual.Seconds(),
		Reason:   r.Reason.String(),
		Residual: nullable.Number(r.Residual), Setup: r.Setup.Seconds(), Steady: nullable.Time(r.Steady.Seconds()),
		Efficiency: nullable.NaN(), Fewest: math.Inf(1),
		Met: nullable.NaN(), MetSweeps: nullable.NaN(), Losses: []*launch.Loss{}, Moves: simulatedMoves(r),
		Parts: max(1, run.Parts), Together: nullable.Number(machines(r, run)),
	}
	s.incomparable()
	if r.Met.After > 0 {
		s.Met, s.MetSweeps = nullable.Number(r.Met.After.Seconds()), nullable.Number(r.Met.Sweeps)
	}
	parts := run.Solver.Partition.Parts()
	s.Partition = slices.Clone(parts[:run.Solver.Problem.Dimension])
	s.Converged = failure == nil && r.Reason == iterate.Converged && r.Residual <= run.Solver.Tolerance
	if failure != nil {
		s.Reason, s.Failure = "failed", failure.Error()
	}
	if errors.Is(failure, simulate.ErrCutOff) {
		s.Reason = launch.CutOff
	}
	var relaxing, protocol, idle time.Duration
	for rank := range r.Ranks {
		k := &r.Ranks[rank]
		share := float64(run.Solver.Partition.Box(iterate.Rank(rank)).Points()) / float64(run.Solver.Problem.Points())
		s.Equivalent += share * k.Sweeps
		s.Fewest, s.Most = min(s.Fewest, k.Sweeps), max(s.Most, k.Sweeps)
		relaxing += k.Relaxing
		protocol += k.Protocol
		idle += k.Idle
		s.Messages += k.Messages
		s.Segments += k.Segments
		s.Bytes += k.Bytes
		s.Lost += k.Lost
	}
	if s.Parts > 1 || len(r.Moves) > 0 { // while one of its parts relaxes, a machine is not idle
		idle = max(0, present(r, run)-relaxing-protocol)
	}
	if all := (relaxing + protocol + idle).Seconds(); all > 0 {
		s.Relaxing = relaxing.Seconds() / all
		s.Protocol = protocol.Seconds() / all
		s.Idle = idle.Seconds() / all
	}
	s.SimulatedSteps = simulatedSteps(r, run.Solver.Problem)
	for i := range r.Losses {
		s.Losses = append(s.Losses, simulatedLoss(&r.Losses[i], run))
	}
	s.succession(r)
	s.ages(r)
	return s
}

// Refused returns the figures of a run that was not started, with the reason.
func Refused(scheme string, machines int, why error) Simulated {
	nan := nullable.NaN()
	s := Simulated{
		Scheme: scheme, Machines: machines, Reason: ReasonRefused, Failure: why.Error(), Together: nan,
		Efficiency: nan, Met: nan, MetSweeps: nan, Residual: nan, MeanAge: nan, Steady: nan,
	}
	s.incomparable()
	return s
}

func (s *Simulated) incomparable() {
	nan := nullable.NaN()
	s.Comparable, s.ComparableLow, s.ComparableHigh = nan, nan, nan
}

// ReasonRefused is the reason of a run that was not started.
const ReasonRefused = "refused"

// MarshalJSON omits the unknown fields of a run that was not started.
func (r SimulatedRow) MarshalJSON() ([]byte, error) {
	type row SimulatedRow
	if r.Reason != ReasonRefused {
		return json.Marshal(row(r))
	}
	return json.Marshal(struct {
		Method    string          `json:"method"`
		Scheme    string          `json:"scheme"`
		Machines  int             `json:"machines"`
		Seconds   nullable.Number `json:"seconds"`
		Converged bool            `json:"converged"`
		Reason    string          `json:"reason"`
		Failure   string          `json:"failure"`
	}{r.Method, r.Scheme, r.Machines, nullable.NaN(), false, r.Reason, r.Failure})
}

// Alone is the run of one machine until it met the tolerance.
type Alone struct {
	Seconds, Sweeps nullable.Number // 0 if unknown
}

// Against sets the efficiency: the time that the machines would take together if they shared the sweeps of one without
// any loss, by the time of the run. Both times end when the tolerance is met, since schemes differ in the time to detect
// it. together is the speed of all machines as a multiple of that of the one.
func (s *Simulated) Against(one Alone, together float64) {
	s.Together = nullable.Number(together)
	if !s.Converged || !s.Met.Known() {
		return
	}
	s.Comparable, s.ComparableLow, s.ComparableHigh = s.Met, s.Met, s.Met
	s.Efficiency = Efficiency(one.Seconds, together, s.Comparable)
}

// OnFullGrid replaces the time by the estimate for the full grid from the same run on a coarser stand-in, which has an
// efficiency of its own. unequal is as in FullGrid, chance a further half width as a part of the time. Without an estimate
// the bounds are unknown.
func (s *Simulated) OnFullGrid(how Growth, fine, coarse int, coarser *Simulated, unequal, chance float64) {
	e, ok := Interval{}, false
	if coarser != nil && s.Efficiency.Known() {
		e, ok = FullGrid(how, StandIn{fine, 1 / s.Efficiency}, StandIn{coarse, 1 / coarser.Efficiency}, unequal)
	}
	if !ok {
		s.ComparableLow, s.ComparableHigh = nullable.NaN(), nullable.NaN()
		return
	}
	together := s.Met * s.Efficiency
	s.Comparable, s.Efficiency = together*nullable.Number(e.Mid), 1/nullable.Number(e.Mid)
	s.ComparableLow = together * nullable.Number(max(0, e.Low-chance*e.Mid))
	s.ComparableHigh = together * nullable.Number(e.High+chance*e.Mid)
}

// ages sets the histogram, without trailing zeros, and the mean.
func (s *Simulated) ages(r *simulate.Result) {
	counts := r.Staleness
	last := len(counts) - 1
	for last >= 0 && counts[last] == 0 {
		last--
	}
	s.Staleness, s.MeanAge = slices.Clone(counts[:last+1]), nullable.Number(r.MeanAge())
}

// machines returns the number of machines of a run.
func machines(r *simulate.Result, run *simulate.Config) int {
	parts := max(1, run.Parts)
	return (len(r.Ranks) + parts - 1) / parts
}

// present returns for how long machines have taken part in a run, all together.
func present(r *simulate.Result, run *simulate.Config) time.Duration {
	all := time.Duration(machines(r, run)) * r.Virtual
	for _, at := range run.Joins {
		all += max(0, r.Virtual-at)
	}
	for _, l := range run.Leaves {
		all -= max(0, r.Virtual-l.At)
	}
	return all
}

// machineAtEnd returns the machine on which a part has ended.
func machineAtEnd(r *simulate.Result, run *simulate.Config, rank int) int {
	at := rank / max(1, run.Parts)
	for i := range r.Moves {
		if m := &r.Moves[i]; m.Rank == rank {
			at = m.To
		}
	}
	return at
}

// simulatedMoves describes the moves of parts after which all peers have relaxed again.
func simulatedMoves(r *simulate.Result) []launch.Moved {
	out := []launch.Moved{}
	for _, m := range r.Moves {
		if m.Resumed > 0 {
			out = append(out, launch.Moved{
				Rank: m.Rank, From: fmt.Sprintf("machine %d", m.From), To: fmt.Sprintf("machine %d", m.To),
				At: m.At.Seconds(), Seconds: (m.Resumed - m.At).Seconds(),
			})
		}
	}
	return out
}

// Machines returns the figures of every peer.
func Machines(r *simulate.Result, run *simulate.Config) []Machine {
	out := []Machine{}
	points := 1
	for range run.Solver.Problem.Dimension {
		points *= max(run.Scale, 1)
	}
	for rank := range r.Ranks {
		machine := machineAtEnd(r, run, rank)
		k, h := &r.Ranks[rank], &run.Model.Hosts[machine]
		out = append(out, Machine{
			Rank: rank, Machine: machine, Class: h.Name, Site: run.Model.Sites[h.Site],
			Points: points * run.Solver.Partition.Box(iterate.Rank(rank)).Points(), Sweeps: k.Sweeps,
			Relaxing: k.Relaxing.Seconds(), Protocol: k.Protocol.Seconds(), Idle: k.Idle.Seconds(),
			Messages: k.Messages, Segments: k.Segments, Bytes: k.Bytes, Lost: k.Lost,
		})
	}
	return out
}
