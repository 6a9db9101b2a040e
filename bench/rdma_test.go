package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each mode carries its messages in the number of work requests that it promises.
func TestRDMAModes(t *testing.T) {
	for _, m := range rdmaModes() {
		t.Run(fmt.Sprintf("%v, %s", m.mode, m.name), func(t *testing.T) {
			d, requests, err := m.round(t.Context())
			require.NoError(t, err)
			require.Positive(t, d)
			each := uint64(9)
			if m.config.MessageBytes > 0 {
				each = 1
			}
			require.GreaterOrEqual(t, requests, 2*rdmaTrips*each)
			require.LessOrEqual(t, requests, 2*rdmaTrips*(each+3))
		})
	}
}
