package peer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnswersWaitForTheOthers(t *testing.T) {
	var all together
	for range 3 {
		all.begin()
	}
	first, second := all.end(), all.end()
	require.False(t, closed(first))
	require.False(t, closed(second))
	require.True(t, closed(all.end()))
	require.True(t, closed(first))
	all.begin() // of the next epoch
	require.True(t, closed(second), "the epoch before is over")
	require.True(t, closed(all.end()))
}
