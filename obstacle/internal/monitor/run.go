package monitor

import (
	"encoding/json"
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Snapshot holds the runs of a program, the oldest first.
type Snapshot struct {
	Runs []Run `json:"runs"`
}

// Run is the state of a run.
type Run struct {
	ID       int       `json:"id"`
	Info     Info      `json:"info"`
	State    State     `json:"state"`
	Stride   int       `json:"stride"` // every so many observations there is a sample
	Samples  []Sample  `json:"samples"`
	Places   []Place   `json:"places"`   // of the peers, by rank
	Peers    []Peer    `json:"peers"`    // by rank
	Reads    []Read    `json:"reads"`    // from other peers
	Sessions []Session `json:"sessions"` // a selection if there are many
	Marks    []Mark    `json:"marks"`    // on the time line
}

// Info holds the properties of a run that do not change.
type Info struct {
	Label     string  `json:"label"` // which tells it from the other runs of the program
	Problem   string  `json:"problem"`
	Scheme    string  `json:"scheme"`
	Method    string  `json:"method"`
	N         []int   `json:"n"`
	Points    int     `json:"points"`
	Peers     int     `json:"peers"`
	Steps     int     `json:"steps"` // time steps; 0: the problem is stationary
	Tolerance float64 `json:"tolerance"`
	Simulated bool    `json:"simulated"` // times are virtual
	Began     float64 `json:"began"`     // seconds since the start of the program
	Bin       int     `json:"bin"`       // ranks for which a Read stands; see BinOf
	Version   string  `json:"version"`
	Attached  bool    `json:"attached"` // the program shows a run that another process leads
	Silent    string  `json:"silent"`   // why the times and sessions of the peers are unknown; empty: they are known
	Attach    string  `json:"attach"`   // flags of obstacle attach; empty: nothing is known after the program
}

// Phases of a run.
const (
	Joining    = "joining"    // the peers join and receive their work
	Solving    = "solving"    // the peers relax
	Recovering = "recovering" // a peer was lost, and not all relax again
	Judging    = "judging"    // the answer is evaluated and written
	Ended      = "ended"
)

// State is what a run has reached.
type State struct {
	Phase     string          `json:"phase"`
	Reason    string          `json:"reason"`  // of the end
	Failure   string          `json:"failure"` // why it failed
	Converged bool            `json:"converged"`
	Elapsed   float64         `json:"elapsed"` // seconds since the first relaxation
	Step      int             `json:"step"`    // time step in progress
	Sweep     float64         `json:"sweep"`   // of rank 0; in simulated runs the mean of all
	Residual  nullable.Number `json:"residual"`
	LeftLeast nullable.Number `json:"left_least"` // range of the estimated seconds to the tolerance
	LeftMost  nullable.Number `json:"left_most"`
	Epoch     int             `json:"epoch"` // how often the run went on after losses and moves
	Contact   nullable.Count  `json:"contact"`
	Traffic   Traffic         `json:"traffic"`
	Ages      Ages            `json:"ages"`
	Sessions  int             `json:"sessions"` // all of them
	Dropped   int             `json:"dropped"`  // marks after the first MaxMarks
	Term      int             `json:"term"`     // of the leader
	Leader    string          `json:"leader"`   // address; empty: only the program can lead the run
	Keepers   []string        `json:"keepers"`  // addresses at which the run goes on, the leader's included
}

// Traffic sums up the halo sessions of a run.
type Traffic struct {
	Messages      uint64 `json:"messages"`
	Bytes         uint64 `json:"bytes"`
	Lost          uint64 `json:"lost"` // messages sent and not received
	Segments      uint64 `json:"segments"`
	Retransmitted uint64 `json:"retransmitted"`
	Replaced      uint64 `json:"replaced"`
}

// Sample is an observation of the residual.
type Sample struct {
	Time     float64 // seconds since the first relaxation
	Sweep    float64
	Residual nullable.Number
	Step     int
}

// MarshalJSON writes an array, since there are many samples.
func (s Sample) MarshalJSON() ([]byte, error) {
	return json.Marshal([4]any{s.Time, s.Sweep, s.Residual, s.Step})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Sample) UnmarshalJSON(b []byte) error {
	return array(b, &s.Time, &s.Sweep, &s.Residual, &s.Step)
}

// Peer is the account of a peer, in seconds.
type Peer struct {
	Sweep    float64
	Relaxing float64
	Waiting  float64 // for other peers
	Protocol float64 // sending, receiving and the rest
	Lost     bool    // its process ended early, or it was silent; another one may have its place
}

// MarshalJSON writes an array.
func (p Peer) MarshalJSON() ([]byte, error) {
	return json.Marshal([5]any{p.Sweep, p.Relaxing, p.Waiting, p.Protocol, p.Lost})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (p *Peer) UnmarshalJSON(b []byte) error {
	return array(b, &p.Sweep, &p.Relaxing, &p.Waiting, &p.Protocol, &p.Lost)
}

// Place is where a peer runs and which box of the grid it has.
type Place struct {
	Process string `json:"process"`
	Host    string `json:"host"`
	Cluster string `json:"cluster"`
	Lo      [3]int `json:"lo"`
	Hi      [3]int `json:"hi"`
}

// Read describes the values that the peers of one bin have read from those of another.
type Read struct {
	By, Of int
	Faces  uint64
	Mean   float64 // age in sweeps of the reader
	Newest float64 // age of those read last
}

// MarshalJSON writes an array.
func (r Read) MarshalJSON() ([]byte, error) {
	return json.Marshal([5]any{r.By, r.Of, r.Faces, r.Mean, r.Newest})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Read) UnmarshalJSON(b []byte) error {
	return array(b, &r.By, &r.Of, &r.Faces, &r.Mean, &r.Newest)
}

// Session is a session as one end sees it.
type Session struct {
	From          int             `json:"from"`
	To            int             `json:"to"`
	Name          string          `json:"name"`
	Mode          string          `json:"mode"`
	Locality      string          `json:"locality"`
	Network       string          `json:"network"`
	PathDown      string          `json:"path_down,omitempty"` // why its data path, or the one that it has left, carries nothing
	FrameBytes    int             `json:"frame_bytes"`         // of the largest frame now in use
	Column        string          `json:"column"`
	Composition   []string        `json:"composition"`
	Protected     bool            `json:"protected"`
	Epoch         int             `json:"epoch"`
	Changes       int             `json:"changes"` // of the composition
	Moves         int             `json:"moves"`   // of the network
	RTT           nullable.Number `json:"rtt"`     // seconds
	Loss          float64         `json:"loss"`    // share of segments that were retransmitted
	Messages      uint64          `json:"messages"`
	Bytes         uint64          `json:"bytes"`
	Retransmitted uint64          `json:"retransmitted"`
}

// Kinds of marks.
const (
	MarkLoss   = "loss"
	MarkMove   = "move"
	MarkChange = "change" // of a session
	MarkLeader = "leader" // another process leads the run
	MarkEnd    = "end"
)

// own reports whether the model made a mark, and not an event Marks.
func (k *Mark) own() bool { return k.Kind == MarkChange || k.Kind == MarkLeader || k.Kind == MarkEnd }

// Mark is something that happened at one time.
type Mark struct {
	Kind string          `json:"kind"`
	Rank int             `json:"rank"` // −1: none in particular
	At   float64         `json:"at"`   // seconds since the first relaxation
	Took nullable.Number `json:"took"` // seconds until the run went on; null: not yet, or nothing stopped
	Text string          `json:"text"`
}

// array decodes a JSON array with one element for each value.
func array(b []byte, values ...any) error {
	var all []json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if len(all) != len(values) {
		return fmt.Errorf("monitor: %d elements in place of %d", len(all), len(values))
	}
	for i, v := range values {
		if err := json.Unmarshal(all[i], v); err != nil {
			return err
		}
	}
	return nil
}

// BinSize returns the number of ranks for which a Read stands in a run of so many peers.
func BinSize(peers int) int { return max(1, (peers+MaxBins-1)/MaxBins) }
