package repair

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// CheckBound returns nil if a repair of the boxes cannot raise the error bound of a run: the largest distance of a
// repaired value from the solution is at most that of the values around, plus the error of the local solve. It needs
// rows of A in the boxes that have no positive off-diagonal entry and no negative sum. Otherwise it returns the reason.
// The cost is that of evaluating the coefficients in the boxes, or of one row if they are constant.
func CheckBound(p *problem.Problem, boxes []problem.Box) error {
	if p.FixedPoint != nil {
		return errors.New("repair: only the user of an iteration knows the norm in which it contracts")
	}
	for _, b := range boxes {
		if err := verify.CheckRows(p, b); err != nil {
			return fmt.Errorf("repair: no weight is known in which the error bound holds: %w", err)
		}
	}
	return nil
}
