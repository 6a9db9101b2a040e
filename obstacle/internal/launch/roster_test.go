package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The message that begins an epoch names the peers that were lost since all peers relaxed in the same epoch: without
// values, gone after their answer, or replaced in an epoch that another loss has ended.
func TestLostRanks(t *testing.T) {
	r := watched(time.Minute, 5)
	for _, m := range r.members {
		m.valued = true
	}
	require.Empty(t, r.lostRanks())
	r.members[4].valued, r.members[0].gone = false, true
	r.epoch = 3
	r.members[2].seated = r.epoch
	require.Equal(t, []int{0, 2, 4}, r.lostRanks())
	r.recovered()
	require.Equal(t, []int{0, 4}, r.lostRanks())
}
