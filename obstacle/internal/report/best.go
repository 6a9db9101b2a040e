package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Candidate is a solved run that may be the fastest of its kind.
type Candidate struct {
	Method   string          `json:"method"`
	Scheme   string          `json:"scheme"`
	Peers    int             `json:"peers"`
	Seconds  nullable.Number `json:"seconds"`
	Low      nullable.Number `json:"seconds_low"` // the bounds on a stand-in; unknown: there is no estimate
	High     nullable.Number `json:"seconds_high"`
	Lockstep bool            `json:"-"`
	// Uncorrected reports that the time is that of a stand-in, as no correction for the full grid is known.
	Uncorrected bool `json:"uncorrected,omitempty"`
}

// Exactly sets the bounds to the time.
func (c *Candidate) Exactly() { c.Low, c.High = c.Seconds, c.Seconds }

// OnStandIns sets the bounds of a time that follows from two stand-ins: the given ones, wider by the difference from the
// time that follows from the coarser one alone. They are unknown if that is.
func (c *Candidate) OnStandIns(low, high, coarser nullable.Number) {
	apart := nullable.Number(math.Abs(float64(c.Seconds - coarser)))
	c.Low, c.High = max(0, low-apart), high+apart
}

// before reports whether c is the faster one for any times within the bounds.
func (c *Candidate) before(d *Candidate) bool { return c.High < d.Low }

func (c *Candidate) seconds() string {
	switch {
	case !c.Low.Known() || !c.High.Known():
		return fmt.Sprintf("%.3g s (without bounds)", c.Seconds)
	case !(c.Low < c.High):
		return fmt.Sprintf("%.3g s", c.Seconds)
	}
	return fmt.Sprintf("%.3g s (%.3g to %.3g)", c.Seconds, c.Low, c.High)
}

// Best holds the fastest synchronous run, the fastest asynchronous one, each on the largest number of peers, and the
// fastest on one peer. A missing one is null.
type Best struct {
	Synchronous  *Candidate `json:"synchronous"`
	Asynchronous *Candidate `json:"asynchronous"`
	One          *Candidate `json:"one_peer"`
	Sentence     string     `json:"sentence"`
}

// BestOf returns the best of the candidates, nil if there are none on the largest number of peers. standIns names the
// stand-ins from which their times follow; empty: there are none, and the times are compared without bounds.
func BestOf(all []Candidate, standIns string) *Best {
	peers := 0
	for _, c := range all {
		peers = max(peers, c.Peers)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool {
		return !(c.Seconds > 0) || !c.Seconds.Known() || c.Peers != 1 && c.Peers != peers
	})
	var b Best
	for _, c := range all {
		switch {
		case c.Peers == 1:
			b.One = faster(b.One, c)
		case c.Lockstep:
			b.Synchronous = faster(b.Synchronous, c)
		default:
			b.Asynchronous = faster(b.Asynchronous, c)
		}
	}
	if b.Synchronous == nil && b.Asynchronous == nil {
		return nil
	}
	b.Sentence = b.sentence(all, standIns)
	return &b
}

func faster(a *Candidate, b Candidate) *Candidate {
	if a != nil && a.Seconds <= b.Seconds {
		return a
	}
	return &b
}

func (b *Best) sentence(among []Candidate, standIns string) string {
	all := ""
	fastest := b.One
	var uncorrected []string
	for _, c := range []*Candidate{b.Synchronous, b.Asynchronous, b.One} {
		kind := "one peer alone"
		switch c {
		case nil:
			continue
		case b.Synchronous:
			kind = "best synchronous"
		case b.Asynchronous:
			kind = "best asynchronous"
		}
		if all != "" {
			all += "; "
		}
		all += fmt.Sprintf("%s: %s, %s, %s", kind, c.Method, c.Scheme, c.seconds())
		if fastest == nil || c.Seconds < fastest.Seconds {
			fastest = c
		}
		if c.Uncorrected && !slices.Contains(uncorrected, c.Method) {
			uncorrected = append(uncorrected, c.Method)
		}
	}
	open := standIns != "" && slices.ContainsFunc(among, func(c Candidate) bool {
		return c != *fastest && !fastest.before(&c)
	})
	switch {
	case open:
		all += fmt.Sprintf(". %s open which is the fastest: run --stand-in 1", leave("Stand-in", standIns))
	case fastest == b.One:
		all += ". One peer alone is the fastest"
		if standIns != "" && !b.decided(among) {
			all += fmt.Sprintf(", and %s open which is the second: run --stand-in 1", leave("stand-in", standIns))
		}
	default:
		all += fmt.Sprintf(". The fastest is %s, %s on %s", fastest.Method, fastest.Scheme, plural(fastest.Peers, "peer"))
	}
	if len(uncorrected) > 0 {
		all += fmt.Sprintf(". For %s no correction for the full grid is known: the times are those of the stand-in",
			strings.Join(uncorrected, " and "))
	}
	return all
}

// leave returns the begin of a sentence about one stand-in or several, such as "stand-ins 8 and 4 leave".
func leave(standIn, which string) string {
	if strings.Contains(which, " ") {
		return standIn + "s " + which + " leave"
	}
	return standIn + " " + which + " leaves"
}

// decided reports whether the faster one of the best synchronous and the best asynchronous run is faster than every run of
// the other kind, for any times within the bounds.
func (b *Best) decided(among []Candidate) bool {
	if b.Synchronous == nil || b.Asynchronous == nil {
		return true
	}
	first := b.Synchronous
	if b.Asynchronous.Seconds < first.Seconds {
		first = b.Asynchronous
	}
	return !slices.ContainsFunc(among, func(c Candidate) bool {
		return c.Peers != 1 && c.Lockstep != first.Lockstep && !first.before(&c)
	})
}
