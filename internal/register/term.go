package register

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// maxKeepers is the maximum number of keepers of a term.
	maxKeepers = 9
	// maxNumber is the highest number of a term and the highest round of a ballot. The next one does not overflow.
	maxNumber = 1 << 30
)

// Term is a value of the register. Addresses are opaque here.
type Term struct {
	Number  int      `json:"number"`  // counts the terms of a run, from 1
	Epoch   int      `json:"epoch"`   // the epoch of the run, which the caller defines
	Leader  string   `json:"leader"`  // address of the process that leads the run
	Keepers []string `json:"keepers"` // addresses of the processes that decide the next term
}

// Equal reports whether two terms have the same content. The order of keepers counts.
func (t Term) Equal(u Term) bool {
	return t.Number == u.Number && t.Epoch == u.Epoch && t.Leader == u.Leader && slices.Equal(t.Keepers, u.Keepers)
}

// Validate returns an error unless the term can be a value of the register.
func Validate(t Term) error {
	switch {
	case t.Number < 1 || t.Number > maxNumber:
		return fmt.Errorf("term %d: the number must be from 1 to %d", t.Number, maxNumber)
	case t.Epoch < 0:
		return fmt.Errorf("term %d: negative epoch %d", t.Number, t.Epoch)
	case len(t.Keepers) == 0 || len(t.Keepers) > maxKeepers:
		return fmt.Errorf("term %d: %d keepers, must be from 1 to %d", t.Number, len(t.Keepers), maxKeepers)
	case !slices.Contains(t.Keepers, t.Leader):
		return fmt.Errorf("term %d: the leader %q is not a keeper", t.Number, t.Leader)
	}
	for i, k := range t.Keepers {
		if k == "" {
			return errors.New("a keeper without an address")
		}
		if slices.Contains(t.Keepers[:i], k) {
			return fmt.Errorf("term %d: the keeper %q is listed twice", t.Number, k)
		}
	}
	return nil
}

// follows reports whether t may be proposed to succeed base.
func (t Term) follows(base Term) bool { return t.Number == base.Number+1 && Validate(t) == nil }

// keptBy reports whether a process is a keeper of the term.
func (t Term) keptBy(address string) bool { return slices.Contains(t.Keepers, address) }

// majority returns the number of keepers that decide the next term.
func (t Term) majority() int { return len(t.Keepers)/2 + 1 }
