package calibration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The description is one that can be modelled, and its rate one of a machine of this
// century; two measurements are of the same order.
func TestThisMachine(t *testing.T) {
	d, err := ThisMachine()
	require.NoError(t, err)
	require.NoError(t, d.Check())
	m, err := d.Model(16)
	require.NoError(t, err)
	require.Len(t, m.Hosts, 16)
	rate := m.Hosts[0].Relaxation
	require.Greater(t, rate, 1e5)
	require.Less(t, rate, 1e11)
	again, err := relaxation()
	require.NoError(t, err)
	require.InEpsilon(t, rate, again, 20)
}
