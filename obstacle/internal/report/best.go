package report

import (
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Candidate is a solved run that may be the fastest of its kind.
type Candidate struct {
	Method   string          `json:"method"`
	Scheme   string          `json:"scheme"`
	Peers    int             `json:"peers"`
	Seconds  nullable.Number `json:"seconds"`
	Lockstep bool            `json:"-"`
}

// Best holds the fastest synchronous run, the fastest asynchronous one, each on the largest number of peers, and the
// fastest on one peer. A missing one is null.
type Best struct {
	Synchronous  *Candidate `json:"synchronous"`
	Asynchronous *Candidate `json:"asynchronous"`
	One          *Candidate `json:"one_peer"`
	Sentence     string     `json:"sentence"`
}

// BestOf returns the best of the candidates, nil if there are none on the largest number of peers.
func BestOf(all []Candidate) *Best {
	peers := 0
	for _, c := range all {
		peers = max(peers, c.Peers)
	}
	var b Best
	for _, c := range all {
		switch {
		case !(c.Seconds > 0) || !c.Seconds.Known():
		case c.Peers == 1:
			b.One = faster(b.One, c)
		case c.Peers != peers:
		case c.Lockstep:
			b.Synchronous = faster(b.Synchronous, c)
		default:
			b.Asynchronous = faster(b.Asynchronous, c)
		}
	}
	if b.Synchronous == nil && b.Asynchronous == nil {
		return nil
	}
	b.Sentence = b.sentence()
	return &b
}

func faster(a *Candidate, b Candidate) *Candidate {
	if a != nil && a.Seconds <= b.Seconds {
		return a
	}
	return &b
}

func (b *Best) sentence() string {
	all := ""
	fastest := b.One
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
		all += fmt.Sprintf("%s: %s, %s, %.3g s", kind, c.Method, c.Scheme, c.Seconds)
		if fastest == nil || c.Seconds < fastest.Seconds {
			fastest = c
		}
	}
	if fastest == b.One {
		return all + ". One peer alone is the fastest"
	}
	return fmt.Sprintf("%s. The fastest is %s, %s on %s", all, fastest.Method, fastest.Scheme, plural(fastest.Peers, "peer"))
}
