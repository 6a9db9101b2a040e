package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// An epoch that was abandoned before its runner began does not begin any more: nothing would end it, and the next epoch
// would wait for its end.
func TestAbandonedEpochDoesNotBegin(t *testing.T) {
	var v values
	v.abandon(2)
	require.False(t, v.begin(&runner.Runner{}, 1))
	require.False(t, v.relaxing())
	require.True(t, v.begin(&runner.Runner{}, 2))
	require.True(t, v.relaxing())
	v.keep(nil, problem.Box{}, iterate.Progress{})
	v.abandon(1) // later epochs go on
	require.True(t, v.begin(&runner.Runner{}, 2))
}
