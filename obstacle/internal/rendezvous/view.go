package rendezvous

import (
	"encoding/json"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// View is what the leader of a run knows of it, for obstacle attach. It is sent repeatedly. Its lists are left out while
// they do not change.
type View struct {
	Phase     int             `json:"phase"`
	ElapsedMS int64           `json:"elapsed_ms"` // since the first relaxation
	Step      int             `json:"step"`       // as in Beat of rank 0
	Sweep     uint64          `json:"sweep"`
	Residual  nullable.Number `json:"residual"`
	Epoch     int             `json:"epoch"`
	Term      register.Term   `json:"term"` // zero: no other process can lead the run

	Spec    *Spec           `json:"spec,omitempty"`    // at first
	Steps   int             `json:"steps,omitempty"`   // time steps of the problem; with Spec
	Members []Member        `json:"members,omitempty"` // by rank
	Boxes   []problem.Box   `json:"boxes,omitempty"`   // of the members
	Losses  json.RawMessage `json:"losses,omitempty"`  // the first MaxListed, as in the answer of the program
	Gone    Traffic         `json:"gone,omitzero"`     // of processes that ran a part before
	Moves   json.RawMessage `json:"moves,omitempty"`   // likewise
	Ranks   []RankView      `json:"ranks,omitempty"`   // of which something has changed, at most MaxRanks
}

// Bounds of the lists of a View.
const (
	MaxListed = 1024 // losses and moves
	MaxRanks  = 16
)

// RankView is what the leader knows of a rank.
type RankView struct {
	Rank     int       `json:"rank"`
	Sweep    uint64    `json:"sweep"`
	Lost     bool      `json:"lost,omitempty"`
	Severed  string    `json:"severed,omitempty"`  // with which peer it exchanges nothing at present, and why
	Sessions []Session `json:"sessions,omitempty"` // as the peer has reported them last
	Former   Traffic   `json:"former,omitzero"`    // likewise, of former epochs
	Account  *Account  `json:"account,omitempty"`  // of all epochs that the leader has seen
}
