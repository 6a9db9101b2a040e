package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// endless are lists of hosts and of tasks that name too many hosts, or none.
var endless = [][2]string{
	{"n[0-9223372036854775807]", ""}, {"n[9223372036854775807]", ""}, {"n[9223372036854775806-9223372036854775807]", ""},
	{"[0-17592186044415][0-1048575]", ""}, {"[0-1048575][0-17592186044415]", ""}, {"n[" + strings.Repeat("0", 5000) + "-1]", ""},
	{"n[-1]", ""}, {"n[NaN]", ""}, {strings.Repeat("n,", maxList), ""}, {strings.Repeat("[", 5000), ""},
	{"a,b", "9223372036854775807"}, {"a,b", "1(x9223372036854775807)"}, {"a,b", "-1"}, {"a,b", "NaN"},
	{"a,b", strings.Repeat("1(x2),", 1000) + "1"},
}

// Lists that do not end are refused, in bounded time and with a short sentence.
func TestEndlessHostLists(t *testing.T) {
	for _, l := range endless {
		hosts, err := Listed(l[0], l[1])
		if l[0] == "n[9223372036854775807]" || l[0] == "n[9223372036854775806-9223372036854775807]" {
			require.NoError(t, err)
			require.Equal(t, "n9223372036854775807", hosts[len(hosts)-1].Name)
			continue
		}
		require.Error(t, err, "%.50q", l)
		require.Less(t, len(err.Error()), 500)
	}
}

// Any list gives at most a bounded number of hosts, or an error.
func FuzzListed(f *testing.F) {
	for _, l := range endless {
		f.Add(l[0], l[1])
	}
	f.Add("n[1-3,07],login", "2(x3),1")
	f.Fuzz(func(t *testing.T, list, tasks string) {
		hosts, err := Listed(list, tasks)
		if err == nil {
			require.LessOrEqual(t, len(hosts), most)
			for _, h := range hosts {
				require.True(t, validHost(h.Name) && h.Slots >= 1 && h.Slots <= most)
			}
		}
	})
}
