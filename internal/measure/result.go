package measure

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// Result is one measured figure: its median over the rounds, and the smallest and largest value.
type Result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	Peers  []Peer  `json:"peers,omitempty"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"`
	Note   string  `json:"note,omitempty"`
	// Detail keeps the figure in the record and out of the tables.
	Detail bool `json:"detail,omitempty"`

	rounds []float64
}

// Peer is what a result is compared with: another program, or a limit of the machine.
type Peer struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // median
	Ratio float64 `json:"ratio"` // median over the rounds of ours / the peer's
}

// Over returns the result of one value per round.
func Over(name, unit string, rounds []float64) Result {
	r := Result{Name: name, Unit: unit, rounds: rounds}
	if len(rounds) == 0 {
		r.Note = "no rounds"
		return r
	}
	r.Value, r.Low, r.High = Median(rounds), slices.Min(rounds), slices.Max(rounds)
	return r
}

// One returns the result of a single value.
func One(name, unit string, value float64) Result { return Over(name, unit, []float64{value}) }

// Median returns the median of at least one value; of an even number, the mean of the middle two.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Against adds a peer measured in the same rounds.
func (r Result) Against(name string, rounds []float64) Result {
	if len(rounds) == 0 || len(r.rounds) == 0 {
		return r
	}
	p := Peer{Name: name, Value: Median(rounds)}
	p.Ratio = r.Value / p.Value
	if len(rounds) == len(r.rounds) {
		p.Ratio = Median(Ratios(r.rounds, rounds))
	}
	r.Peers = append(slices.Clip(r.Peers), p)
	return r
}

// AtLeast sets a lower bound on the median as the target.
func (r Result) AtLeast(v float64) Result { return r.target(r.Value >= v, "≥ %.4g", v) }

// AtMost sets an upper bound on the median as the target.
func (r Result) AtMost(v float64) Result { return r.target(r.Value <= v, "≤ %.4g", v) }

// Between sets both bounds on the median as the target.
func (r Result) Between(low, high float64) Result {
	return r.target(r.Value >= low && r.Value <= high, "%.4g to %.4g", low, high)
}

// BestAtMost and BestAtLeast compare the best round with the target. Other load on the machine
// can only worsen these figures, so the best round shows what the program needs.
func (r Result) BestAtMost(v float64) Result { return r.target(r.Low <= v, "best ≤ %.4g", v) }

// BestAtLeast is BestAtMost for figures that are better when larger.
func (r Result) BestAtLeast(v float64) Result { return r.target(r.High >= v, "best ≥ %.4g", v) }

// RatioAtLeast sets a lower bound on the ratio to the peer added last as the target.
func (r Result) RatioAtLeast(v float64) Result { return r.ratio("≥", v, 1) }

// RatioAtMost sets an upper bound on the ratio to the peer added last as the target.
func (r Result) RatioAtMost(v float64) Result { return r.ratio("≤", v, -1) }

// ratio sets a lower (side 1) or upper bound (side −1) on the ratio to the peer added last.
func (r Result) ratio(sign string, v, side float64) Result {
	if len(r.Peers) == 0 {
		return r
	}
	p := r.Peers[len(r.Peers)-1]
	return r.target(side*p.Ratio >= side*v, sign+" %.4g × %s", v, p.Name)
}

// target adds a target, whose numbers have four digits: enough for 1.005, and 3 × 5.24288 is written as 15.73. A result
// has met its targets if it met all of them.
func (r Result) target(met bool, format string, args ...any) Result {
	met = met && (r.Met == nil || *r.Met)
	r.Met = &met
	r.Target = strings.TrimPrefix(r.Target+"; "+fmt.Sprintf(format, args...), "; ")
	return r
}

// Because sets the note.
func (r Result) Because(note string) Result {
	r.Note = note
	return r
}

// AsDetail sets Detail.
func (r Result) AsDetail() Result {
	r.Detail = true
	return r
}

// Ratios returns a[i] / b[i].
func Ratios(a, b []float64) []float64 {
	return floats.DivTo(make([]float64, len(a)), a, b)
}

// Scaled returns f · a[i].
func Scaled(a []float64, f float64) []float64 {
	return floats.ScaleTo(make([]float64, len(a)), f, a)
}
