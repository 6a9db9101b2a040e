package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each way of the comparison carries its messages, each in as many work requests as it
// promises.
func TestRDMAWays(t *testing.T) {
	for _, w := range rdmaWays() {
		t.Run(fmt.Sprintf("%v, %s", w.mode, w.name), func(t *testing.T) {
			d, requests, err := w.round(t.Context())
			require.NoError(t, err)
			require.Positive(t, d)
			each := uint64(9)
			if w.config.MessageBytes > 0 {
				each = 1
			}
			require.GreaterOrEqual(t, requests, 2*rdmaTurns*each)
			require.LessOrEqual(t, requests, 2*rdmaTurns*(each+3))
		})
	}
}
