package cli

import (
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// balanceMode parses --balance. It returns whether planes move between peers, and the text for the answer. A run that
// cannot be balanced is not refused, since compare also has rows of one peer.
func (q *request) balanceMode(w *work) (bool, string, error) {
	switch q.balance {
	case "", "off":
		return false, "off", nil
	case "on":
		c := problem.Config{
			Problem: w.problem, Partition: w.partition, Scheme: w.scheme, Order: w.order, Method: w.method,
		}
		if err := richardson.Balanceable(&c); err != nil {
			return false, "off: " + strings.TrimPrefix(err.Error(), richardson.ErrBalance.Error()+": "), nil
		}
		return true, "on", nil
	}
	return false, "", usage("--balance %q: want on or off", q.balance)
}
