package build

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	d := describe(&debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "-compiler", Value: "gc"}, {Key: "-tags", Value: "noasm,nolibibverbs"}, {Key: "-trimpath", Value: "true"},
		{Key: "GOAMD64", Value: "v3"}, {Key: "vcs", Value: "git"}, {Key: "vcs.modified", Value: "true"},
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-28T01:02:03Z"},
	}})
	require.Equal(t, Info{
		Commit: "0123456789abcdef", CommitTime: "2026-11-28T01:02:03Z", Modified: true, Go: runtime.Version(),
		Compiler: "gc", OS: runtime.GOOS, Arch: runtime.GOARCH, Tags: []string{"noasm", "nolibibverbs"},
		Settings: map[string]string{"-trimpath": "true", "GOAMD64": "v3"},
	}, d)
}

// Without build information there are no null values for programs that read the JSON.
func TestDescribeNothing(t *testing.T) {
	text, err := json.Marshal(describe(&debug.BuildInfo{}))
	require.NoError(t, err)
	require.NotContains(t, string(text), "null")
	require.Equal(t, runtime.GOARCH, Describe().Arch)
}
