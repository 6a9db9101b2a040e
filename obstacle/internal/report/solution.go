// Package report describes runs as JSON and as text. Units are seconds and bytes. Unknown values are null.
package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Solution is the JSON of solve.
type Solution struct {
	Problem   string `json:"problem"`
	N         []int  `json:"n"`
	Points    int    `json:"points"`
	Scheme    string `json:"scheme"`
	Method    string `json:"method"`
	MethodWhy string `json:"method_why,omitempty"`   // why it is the method: the flag, or why the program chose it
	About     string `json:"method_about,omitempty"` // description of the method by peer 0
	Iterates  string `json:"iterates"`               // unit of sweeps: sweeps, cycles or exchanges
	Order     string `json:"order"`
	Network   string `json:"network"`
	Peers     int    `json:"peers"`
	Threads   int    `json:"threads"`
	Chosen    string `json:"chosen,omitempty"` // why these numbers of peers and threads, if the program chose them
	InProcess bool   `json:"in_process"`
	Partition []int  `json:"partition"` // parts per axis
	Parts     int    `json:"parts"`     // that each peer relaxed at the start

	PartitionWhy string `json:"partition_why,omitempty"` // as problem.SlabsOrBoxes returns it, or the flag
	Recover      string `json:"recover"`                 // what the run does when a peer is lost: launch.Recovery
	RecoverWhy   string `json:"recover_why"`

	Alternatives Alternatives `json:"-"`

	rounded bool // it stagnated by rounding

	Balance     string `json:"balance"` // "on", "off", or "off: " and the reason
	PlanesMoved int    `json:"planes_moved"`
	Planes      []int  `json:"planes,omitempty"` // of each peer at the end, if planes may move

	Converged                  bool             `json:"converged"`
	Reason                     string           `json:"reason"`
	Failure                    string           `json:"failure,omitempty"`
	MissingBlocks              []int            `json:"missing_blocks,omitempty"` // ranks whose block was lost
	FilledBlocks               []launch.Filled  `json:"filled_blocks,omitempty"`  // the others hold starting values
	Losses                     []*launch.Loss   `json:"losses"`                   // from which the run went on
	Moves                      []launch.Moved   `json:"moves"`                    // parts that went to other processes
	Tolerance                  float64          `json:"tolerance"`
	AtStart                    bool             `json:"at_start,omitempty"`  // the answer is the starting iterate
	ReachableTolerance         nullable.Number  `json:"reachable_tolerance"` // of a run that stagnated
	RelativeResidual           nullable.Number  `json:"relative_residual"`
	ResidualInf                nullable.Number  `json:"residual_inf"`
	ErrorBound                 nullable.Number  `json:"error_bound"`
	ErrorBoundOf               string           `json:"error_bound_of"`            // solution that the error refers to
	ErrorBoundBy               string           `json:"error_bound_by,omitempty"`  // how w > 0 with A·w > 0 was found
	ErrorBoundWhy              string           `json:"error_bound_why,omitempty"` // why there is none
	ErrorBoundSweeps           float64          `json:"error_bound_sweeps"`        // cost of the search for w
	MMatrix                    bool             `json:"m_matrix"`
	InverseNorm                nullable.Number  `json:"inverse_norm"` // bound of ‖A⁻¹‖∞
	MaxError                   nullable.Number  `json:"max_error"`
	ContactPoints              nullable.Count   `json:"contact_points"`
	UpperContact               nullable.Count   `json:"upper_contact_points"`
	ContactForce               nullable.Number  `json:"contact_force"` // A·u − f on φ, integrated
	UpperForce                 nullable.Number  `json:"upper_force"`   // the same on ψ
	Sum                        nullable.Number  `json:"sum"`
	Sweeps                     []nullable.Count `json:"sweeps"`
	SequentialEquivalentSweeps float64          `json:"sequential_equivalent_sweeps"`
	Snapshots                  int              `json:"snapshots"`

	Seconds         nullable.Number `json:"seconds"`
	SetupSeconds    float64         `json:"setup_seconds"`
	GatherSeconds   float64         `json:"gather_seconds"`
	OutputSeconds   float64         `json:"output_seconds"`
	PointsPerSecond nullable.Number `json:"points_per_second"` // relaxed, by all peers
	Messages        uint64          `json:"messages"`
	Bytes           uint64          `json:"bytes"`
	MessagesLost    uint64          `json:"messages_lost"`
	SegmentsSent    uint64          `json:"segments_sent"`
	SegmentsLost    uint64          `json:"segments_lost"`
	Retransmitted   uint64          `json:"retransmitted"`
	ValuesReplaced  uint64          `json:"values_replaced"`
	LauncherPeak    nullable.Count  `json:"launcher_peak_resident_bytes"`
	Kernel          *string         `json:"kernel"`

	HasUpper bool `json:"-"` // the problem has an upper obstacle; for the text

	// Refused counts, by reason, what did not come from a peer of the run or came twice (docs/security.md). It had no
	// effect.
	Refused map[string]uint64 `json:"refused"`

	Enclosure *Enclosure `json:"enclosure,omitempty"` // nil if not requested

	*Evolution // nil for a stationary problem

	Option *Option `json:"option,omitempty"` // nil for other problems

	Checkpoint *launch.Saved `json:"checkpoint,omitempty"` // nil if none was requested
	Resumed    *Resumed      `json:"resumed,omitempty"`    // nil if the run did not continue another
	Resumable  bool          `json:"resumable"`            // obstacle resume can continue the run

	Composition []string  `json:"composition"`
	Sessions    []Session `json:"sessions"` // each as seen by both ends
	PerPeer     []Peer    `json:"per_peer"`
	Probes      []Probe   `json:"probes"`
	Outputs     []Output  `json:"outputs"`
	Seed        uint64    `json:"seed"`
	Version     string    `json:"version"`
}

// Peer describes one peer of a run.
type Peer struct {
	Rank       int             `json:"rank"`
	Host       string          `json:"host"`
	Pid        int             `json:"pid"`
	Cluster    string          `json:"cluster,omitempty"`    // declared label
	Device     string          `json:"device,omitempty"`     // of its InfiniBand rail
	Processors []int           `json:"processors,omitempty"` // to which its process was bound
	Without    string          `json:"without_ib,omitempty"` // why it has none
	Box        [3][2]int       `json:"box"`                  // interior points, half open, x first
	Points     int             `json:"points"`
	Sweeps     nullable.Count  `json:"sweeps"`
	Given      nullable.Count  `json:"planes_given"`
	Taken      nullable.Count  `json:"planes_taken"`
	Seconds    nullable.Number `json:"seconds"`
	CPUSeconds nullable.Number `json:"cpu_seconds"`
	Peak       nullable.Count  `json:"peak_resident_bytes"`
	Idle       nullable.Count  `json:"idle_resident_bytes"` // before its block was allocated
	Residual   nullable.Number `json:"agreed_residual"`     // as the peers measured it, for comparison
	Lost       bool            `json:"lost"`
}

// Probe is u at a grid point.
type Probe struct {
	At []float64 `json:"at"`
	U  float64   `json:"u"`

	Between *[2]float64 `json:"between,omitempty"` // bounds of u of the discrete solution
}

// reachable returns a tolerance that a stagnated run would have met, rounded to two digits. If it stagnated by rounding, that is
// one that every method can meet. Otherwise it is the last residual with a margin. For an incomplete time step it is the residual that the peers agreed on. It is unknown if the last iterate is not the
// answer, and if the start meets it.
func (s *Solution) reachable(o *launch.Outcome) nullable.Number {
	if o.Reason != launch.Stagnated || o.AtStart {
		return nullable.NaN()
	}
	most := 0.0
	if s.Evolution == nil {
		most = float64(s.RelativeResidual)
	}
	for _, p := range o.Peers {
		if p.Residual.Known() {
			most = max(most, float64(p.Residual))
		}
	}
	if level := reachableLevel * o.Rounding; s.rounded && most <= level {
		most = level
	} else {
		most *= reachableMargin
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(most, 'e', 1, 64), 64)
	if rounded >= 1 {
		return nullable.NaN()
	}
	return nullable.Number(rounded)
}

const (
	reachableMargin = 1.25
	// reachableLevel is the largest part of the level of rounding errors at which a method has stagnated in a measurement.
	reachableLevel = 12. / 32
)

// Add sets the fields that follow from the run and the evaluation of its answer.
func (s *Solution) Add(o *launch.Outcome, cut problem.Partition, e verify.Evaluation) {
	s.Reason, s.Failure = o.Reason, o.Failure
	s.Checkpoint, s.Resumable = o.Checkpoint, o.Resumable
	s.MissingBlocks, s.FilledBlocks = o.Missing, o.Filled
	s.Parts = max(o.Parts, 1)
	s.Losses, s.Moves = append([]*launch.Loss{}, o.Losses...), append([]launch.Moved{}, o.Moves...)
	s.RelativeResidual, s.ResidualInf = nullable.Number(e.RelativeResidual), nullable.Number(e.ResidualInf)
	s.ErrorBound, s.MaxError = nullable.Number(e.ErrorBound), nullable.Number(e.MaxError)
	c := e.Certificate
	s.MMatrix, s.InverseNorm = c.MMatrix, nullable.Number(c.Inverse)
	s.ErrorBoundBy, s.ErrorBoundWhy = c.By, c.Why
	s.ErrorBoundSweeps, s.ErrorBoundOf = c.Work, "the discrete solution"
	s.ContactForce, s.UpperForce = nullable.Number(e.Force[0]), nullable.Number(e.Force[1])
	s.ContactPoints, s.UpperContact = nullable.Count(e.ContactPoints), nullable.Count(e.UpperPoints)
	s.Sum = nullable.Number(e.Sum)
	s.rounded = e.RelativeResidual <= o.Rounding && !o.AtStart
	s.ReachableTolerance, s.AtStart = s.reachable(o), o.AtStart
	// An answer with filled holes is solved if its residual meets the tolerance.
	s.Converged = (o.Reason == launch.Converged || len(o.Filled) > 0) && e.RelativeResidual <= s.Tolerance
	s.SetupSeconds, s.GatherSeconds = o.Setup.Seconds(), (o.Gather - o.Run).Seconds()
	s.Sweeps, s.PerPeer = []nullable.Count{}, []Peer{}
	s.Composition = []string{}
	relaxed := 0.0
	for r, p := range o.Peers {
		box := cut.Box(iterate.Rank(r))
		if len(o.Boxes) > 0 {
			box = o.Boxes[r]
		}
		if s.PlanesMoved += p.Taken; s.Balance == "on" && s.Parts <= 1 {
			s.Planes = append(s.Planes, box.Size()[len(s.N)-1])
		}
		peer := Peer{
			Rank: r, Host: o.Hosts[r].Host, Pid: o.Hosts[r].Pid, Cluster: o.Hosts[r].Cluster, Points: p.Points,
			Sweeps: nullable.Count(p.Sweeps), Given: nullable.Count(p.Given), Taken: nullable.Count(p.Taken),
			Seconds: nullable.Number(p.Seconds), CPUSeconds: nullable.Number(p.CPUSeconds),
			Processors: p.Processors, Peak: nullable.Measured(p.PeakBytes), Idle: nullable.Measured(p.IdleBytes),
			Residual: p.Residual, Lost: slices.Contains(o.Missing, r), Device: p.Device, Without: p.Without,
		}
		if peer.Lost && p.Sweeps == 0 && p.Seconds == 0 { // it sent no result
			peer.unknown()
		}
		for a := range 3 {
			peer.Box[a] = [2]int{box.Lo[a], box.Hi[a]}
		}
		s.PerPeer = append(s.PerPeer, peer)
		s.Sweeps = append(s.Sweeps, peer.Sweeps)
		s.Seconds = max(s.Seconds, nullable.Number(p.Seconds))
		s.Snapshots = max(s.Snapshots, p.Snapshots)
		if p.Kernel != "" {
			s.Kernel = &p.Kernel
		}
		relaxed += float64(p.Relaxed)
		if r == 0 {
			s.About = p.Method
		}
	}
	if allReplaced(o) {
		s.Seconds = nullable.Number(o.Run.Seconds())
	}
	s.Iterates = iterates(s.Method)
	s.SequentialEquivalentSweeps = relaxed / float64(s.Points)
	if s.PointsPerSecond = nullable.NaN(); s.Seconds > 0 {
		s.PointsPerSecond = nullable.Number(relaxed) / s.Seconds
	} else if len(o.Missing) == len(o.Peers) {
		s.Seconds = nullable.NaN()
	}
	s.traffic(o)
	s.Refused = refused(o)
	s.Sessions = sessions(o)
	s.Network = network(s.Sessions)
}

// unknown marks the figures of the peer as unknown.
func (p *Peer) unknown() {
	for _, c := range []*nullable.Count{&p.Sweeps, &p.Given, &p.Taken} {
		*c = nullable.Unknown
	}
	for _, n := range []*nullable.Number{&p.Seconds, &p.CPUSeconds, &p.Residual} {
		*n = nullable.NaN()
	}
}

func iterates(method string) string {
	switch method {
	case problem.Multigrid, problem.FAS:
		return "cycles"
	case problem.Schwarz:
		return "exchanges"
	}
	return "sweeps"
}

// network returns the network of all halo sessions at the end, "mixed" if they differ, and "ether" without sessions.
func network(all []Session) string {
	out := ""
	for _, h := range all {
		switch {
		case !strings.HasPrefix(h.Name, rendezvous.HaloPrefix) || h.Network == out:
		case out == "":
			out = h.Network
		default:
			return "mixed"
		}
	}
	return cmp.Or(out, "ether")
}

// refused sums up what the peers and the rendezvous refused.
func refused(o *launch.Outcome) map[string]uint64 {
	out := map[string]uint64{}
	for _, p := range o.Peers {
		for reason, count := range p.Refused {
			out[reason] += count
		}
	}
	if o.Refused > 0 {
		out["rendezvous.refused"] = uint64(o.Refused)
	}
	return out
}

func (s *Solution) traffic(o *launch.Outcome) {
	t := Traffic{Traffic: o.Gone}
	for _, p := range o.Peers {
		t.Add(p.Sessions, p.Former)
		for _, h := range p.Sessions {
			if len(s.Composition) == 0 && strings.HasPrefix(h.Name, rendezvous.HaloPrefix) {
				s.Composition = h.Composition
			}
		}
	}
	s.Messages, s.Bytes = t.Messages, t.Bytes
	s.MessagesLost = t.MessagesLost()
	s.SegmentsSent, s.SegmentsLost = t.Segments, t.SegmentsLost()
	s.Retransmitted, s.ValuesReplaced = t.Retransmitted, t.Replaced
}

// Efficiency returns t(1)/(k·t), where k is the speed of all peers together as a multiple of the one's: unknown if a time
// is missing.
func Efficiency(one nullable.Number, together float64, t nullable.Number) nullable.Number {
	if !(one > 0) || !(t > 0) || !(together > 0) {
		return nullable.NaN()
	}
	return one / (nullable.Number(together) * t)
}
