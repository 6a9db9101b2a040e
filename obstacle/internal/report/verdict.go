package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Contender holds the measurements of one solved row of a comparison. Values that were not measured are NaN.
type Contender struct {
	Name             string // the scheme, with the method if there are several
	Peers            int
	Seconds          float64 // median of the rounds
	Fastest, Slowest float64
	Sweeps           float64 // points relaxed/points
	Idle             float64 // share of the time of the peers
	Age              float64 // mean age of the faces read, in sweeps
	Messages         float64
}

// Verdict says which row of a comparison is the fastest, and why. The reasons follow from the measurements.
type Verdict struct {
	Peers        int             `json:"peers"`
	Winner       *string         `json:"winner"`        // Fastest; nil: neither is faster, or it depends on the stand-in
	Fastest      *string         `json:"fastest"`       // the row with the shortest time; nil: it depends on the stand-in
	Against      *string         `json:"against"`       // the row with the next time, likewise
	Factor       nullable.Number `json:"factor"`        // time of Against / time of Fastest, unknown without an estimate
	WithinSpread bool            `json:"within_spread"` // the times of the two overlap
	SpreadKnown  bool            `json:"spread_known"`  // there were several rounds, or times of the full grid that do not vary
	SweepRatio   nullable.Number `json:"sweep_ratio"`   // sweeps of Fastest / of Against
	CostRatio    nullable.Number `json:"cost_ratio"`    // time of a sweep of Fastest / of Against
	Reasons      []string        `json:"reasons"`
	Sentence     string          `json:"sentence"`

	// FactorLow and FactorHigh bound Factor by the slowest and the fastest times. They are unknown if the spread is.
	FactorLow  nullable.Number `json:"factor_low"`
	FactorHigh nullable.Number `json:"factor_high"`
	// DependsOnStandIn reports that two stand-ins do not agree on the winner, or leave it open.
	DependsOnStandIn bool `json:"depends_on_stand_in"`
}

// Thresholds below which differences give no reason.
const (
	equalRatio = 0.05 // of sweeps or times, relative
	equalIdle  = 0.05 // of the time
	fewerBy    = 0.2  // messages, relative
)

// Judge compares the two fastest contenders with the most peers of which there are two. rounds is the number of
// measurements of each, 0 if times do not vary. It returns nil if there is nothing to compare.
func Judge(all []Contender, rounds int) *Verdict {
	peers := 0
	for _, c := range all {
		same := 0
		for _, d := range all {
			if d.Peers == c.Peers && d.Seconds > 0 {
				same++
			}
		}
		if same > 1 {
			peers = max(peers, c.Peers)
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c Contender) bool { return c.Peers != peers || !(c.Seconds > 0) })
	if len(all) < 2 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Contender) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	})
	w, s := &all[0], &all[1]
	v := &Verdict{
		Peers: peers, Fastest: &w.Name, Against: &s.Name, Factor: nullable.Number(s.Seconds / w.Seconds),
		SpreadKnown: rounds != 1, WithinSpread: rounds != 1 && w.Slowest >= s.Fastest,
		SweepRatio: nullable.Number(w.Sweeps / s.Sweeps),
		CostRatio:  nullable.Number(w.Seconds / w.Sweeps / (s.Seconds / s.Sweeps)), Reasons: []string{},
		FactorLow: nullable.Number(s.Fastest / w.Slowest), FactorHigh: nullable.Number(s.Slowest / w.Fastest),
	}
	if !v.SpreadKnown {
		v.FactorLow, v.FactorHigh = nullable.NaN(), nullable.NaN()
	}
	if !v.WithinSpread {
		v.Winner, v.Reasons = &w.Name, reasons(w, s, v)
	}
	v.Sentence = v.sentence(w, s, rounds)
	return v
}

// undecided leaves the verdict without a winner.
func (v *Verdict) undecided(sentence string) {
	v.Winner, v.Reasons, v.Sentence = nil, []string{}, sentence
}

// refuse leaves the verdict without an order of the rows and without what compares them, which only the full grid can give.
func (v *Verdict) refuse(sentence string) {
	v.DependsOnStandIn = true
	v.undecided(sentence)
	v.Fastest, v.Against = nil, nil
	for _, n := range []*nullable.Number{&v.Factor, &v.FactorLow, &v.FactorHigh, &v.SweepRatio, &v.CostRatio} {
		*n = nullable.NaN()
	}
}

// reasons explains a shorter time by its two factors, the number of sweeps and the time of one.
func reasons(w, s *Contender, v *Verdict) []string {
	out := []string{}
	sweeps, cost := float64(v.SweepRatio), float64(v.CostRatio)
	switch {
	case cost < 1-equalRatio:
		out = append(out, fmt.Sprintf("a sweep takes %.2f of the time%s", cost, cheaper(w, s, false)))
	case cost > 1+equalRatio:
		out = append(out, fmt.Sprintf("although a sweep takes %.2f times as long%s", cost, cheaper(w, s, true)))
	}
	switch {
	case sweeps < 1-equalRatio:
		out = append(out, fmt.Sprintf("it needs %.2f of the sweeps%s", sweeps, older(s)))
	case sweeps > 1+equalRatio:
		out = append(out, fmt.Sprintf("although it needs %.2f times as many sweeps%s", sweeps, older(w)))
	}
	if math.IsNaN(sweeps) && w.Idle < s.Idle-equalIdle {
		out = append(out, fmt.Sprintf("its peers are idle for %s of the time instead of %s", percent(w.Idle),
			percent(s.Idle)))
	}
	return out
}

// cheaper returns what may explain that a sweep of w takes less time than one of s, or more if dearer: idle time, then
// messages.
func cheaper(w, s *Contender, dearer bool) string {
	sign := 1.0
	if dearer {
		sign = -1
	}
	if sign*(s.Idle-w.Idle) > equalIdle {
		return fmt.Sprintf(" (idle %s of it, against %s)", percent(w.Idle), percent(s.Idle))
	}
	if r := w.Messages / w.Sweeps / (s.Messages / s.Sweeps); sign*(1-r) > fewerBy {
		return fmt.Sprintf(" (with %.2f times the messages in each)", r)
	}
	return ""
}

// older returns what may explain that c needs more sweeps: the age of the values that it reads.
func older(c *Contender) string {
	if c.Age > equalRatio {
		return fmt.Sprintf(" (of %s, values are %.1f sweeps old on average)", c.Name, c.Age)
	}
	return ""
}

// factor formats the factor with its bounds, if they differ.
func (v *Verdict) factor() string {
	if v.FactorLow < v.FactorHigh {
		return fmt.Sprintf("%.2f (%.2f to %.2f)", float64(v.Factor), float64(v.FactorLow), float64(v.FactorHigh))
	}
	return fmt.Sprintf("%.2f", float64(v.Factor))
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func (v *Verdict) sentence(w, s *Contender, rounds int) string {
	of := func(c *Contender) string {
		if !(c.Fastest < c.Slowest) {
			return fmt.Sprintf("%.3g s", c.Seconds)
		}
		return fmt.Sprintf("%.3g s, %.3g to %.3g", c.Seconds, c.Fastest, c.Slowest)
	}
	if v.WithinSpread {
		return fmt.Sprintf("on %s, %s (%s) and %s (%s) differ by less than the spread of the rounds: neither is faster",
			plural(v.Peers, "peer"), w.Name, of(w), s.Name, of(s))
	}
	factor := fmt.Sprintf("%.2f", float64(v.Factor))
	if rounds == 0 {
		factor = v.factor()
	}
	out := fmt.Sprintf("on %s, %s is %s times as fast as %s (%s against %s)", plural(v.Peers, "peer"), w.Name,
		factor, s.Name, of(w), of(s))
	if len(v.Reasons) > 0 {
		var because, although []string
		for _, r := range v.Reasons {
			if strings.HasPrefix(r, "although") {
				although = append(although, r)
			} else {
				because = append(because, r)
			}
		}
		if len(because) > 0 {
			out += ", because " + strings.Join(because, " and ")
		}
		if len(although) > 0 {
			out += ", " + strings.Join(although, " and ")
		}
	}
	if !v.SpreadKnown {
		out += "; one round does not show the spread"
	}
	return out
}
