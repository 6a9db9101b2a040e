package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Enclosure bounds the discrete solution from below and above, rounding errors included. Unknown values are null.
type Enclosure struct {
	Width         nullable.Number     `json:"width"` // largest distance between the bounds
	Sum           *[2]nullable.Number `json:"sum"`
	ContactPoints *[2]int             `json:"contact_points"` // lower and upper bound
	UpperContact  *[2]int             `json:"upper_contact_points"`
	Sweeps        nullable.Count      `json:"sweeps"`
	Why           string              `json:"why,omitempty"` // reason if there is none
}

// NewEnclosure returns the JSON of an enclosure.
func NewEnclosure(n *verify.Enclosure) *Enclosure {
	return &Enclosure{
		Width: nullable.Number(n.Width), Sum: &[2]nullable.Number{nullable.Number(n.Sum[0]), nullable.Number(n.Sum[1])},
		ContactPoints: &n.Contact, UpperContact: &n.UpperContact, Sweeps: nullable.Count(n.Sweeps),
	}
}

// NoEnclosure returns the JSON of a missing enclosure.
func NoEnclosure(why string) *Enclosure {
	return &Enclosure{Width: nullable.NaN(), Sweeps: nullable.Unknown, Why: why}
}

// text writes the enclosure as text, nothing for a nil one.
func (n *Enclosure) text(w io.Writer, upper bool) {
	switch {
	case n == nil:
	case n.Why != "":
		fmt.Fprintf(w, "enclosed\tunknown: %s\n", n.Why)
	default:
		fmt.Fprintf(w, "enclosed\tbetween vectors at most %s apart; sum %.12g to %.12g; %d to %d contact points",
			value(n.Width), n.Sum[0], n.Sum[1], n.ContactPoints[0], n.ContactPoints[1])
		if upper {
			fmt.Fprintf(w, ", %d to %d on the upper obstacle", n.UpperContact[0], n.UpperContact[1])
		}
		fmt.Fprintln(w)
	}
}
