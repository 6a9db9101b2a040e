package host

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The smallest quota of the process's group and of those above it holds, in both versions of control groups.
func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"none":      {nil, 0},
		"no limit":  {map[string]string{"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "max 100000"}, 0},
		"version 2": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5},
		"of a parent": {map[string]string{"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "300000 100000",
			"sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0.5},
		"version 1": {map[string]string{"proc/self/cgroup": "2:cpuacct:/x\n1:cpu,other:/a\n0::/\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n"}, 1},
		"version 1, no limit": {map[string]string{"proc/self/cgroup": "1:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 0},
		"malformed": {map[string]string{"proc/self/cgroup": "0::/../..\n:\n", "sys/fs/cgroup/cpu.max": "1 0"}, 0},
	} {
		files := fstest.MapFS{}
		for f, text := range c.files {
			files[f] = &fstest.MapFile{Data: []byte(text)}
		}
		require.InDelta(t, c.want, quota(files), 1e-12, name)
	}
}
