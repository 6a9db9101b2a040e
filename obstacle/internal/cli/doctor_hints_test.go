package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHints(t *testing.T) {
	good := tuning{huge: "always [madvise] never", governor: "performance", lockBytes: 64 << 10, openFiles: 1024,
		mostFiles: -1}
	for name, c := range map[string]struct {
		change func(t *tuning)
		want   []string // the command and what was found; none: no hint
	}{
		"all is well":     {func(*tuning) {}, nil},
		"nothing is read": {func(t *tuning) { *t = tuning{lockBytes: -1, openFiles: -1} }, nil},
		"short queues": {
			func(t *tuning) {
				t.udpProblem, t.udpAdvice = "limited to 212992 bytes", "sysctl -w net.core.rmem_max=4194304"
			},
			[]string{"sudo sysctl -w net.core.rmem_max=4194304", "limited to 212992 bytes"},
		},
		"advice that is no setting": {func(t *tuning) { t.udpAdvice = "run Linux 5.0 or later" }, nil},
		"no huge pages": {func(t *tuning) { t.huge = "always madvise [never]" },
			[]string{"echo madvise | sudo tee", "never"}},
		"huge pages always": {func(t *tuning) { t.huge = "[always] madvise never" }, nil},
		"slow processors": {func(t *tuning) { t.governor = "powersave" },
			[]string{"-g performance", "the governor is powersave"}},
		"powersave of pstate, which follows the load": {
			func(t *tuning) { t.governor, t.driver = "powersave", "intel_pstate" }, nil,
		},
		"a quota below the threads": {
			func(t *tuning) { t.quota, t.threads = 1.5, 2 },
			[]string{"--peers 1 --threads 1", "allows 1.5 processors, and solve starts 2 threads"},
		},
		"a quota below one":     {func(t *tuning) { t.quota, t.threads = 0.5, 2 }, []string{"--threads 1", "allows 0.5 processors"}},
		"a quota that suffices": {func(t *tuning) { t.quota, t.threads = 2, 2 }, nil},
		"schedutil":             {func(t *tuning) { t.governor = "schedutil" }, nil},
		"locked memory": {
			func(t *tuning) { t.rdma, t.registers = true, 16<<20 },
			[]string{"memlock unlimited", "the limit is 64.0 KiB, and a peer registers 16.0 MiB"},
		},
		"locked memory without RDMA":    {func(t *tuning) { t.registers = 16 << 20 }, nil},
		"no limit of locked memory":     {func(t *tuning) { t.rdma, t.lockBytes = true, -1 }, nil},
		"locked memory that is allowed": {func(t *tuning) { t.rdma, t.lockAllows = true, true }, nil},
		"few files": {func(t *tuning) { t.openFiles = 256 },
			[]string{"ulimit -n 4096", "a process may open 256"}},
		"few files by the hard limit": {
			func(t *tuning) { t.openFiles, t.mostFiles = 256, 512 },
			[]string{"* - nofile 4096", "a process may open 256"},
		},
	} {
		x := good
		c.change(&x)
		got := x.hints()
		require.NotNil(t, got)
		if c.want == nil {
			require.Empty(t, got, name)
			continue
		}
		require.Len(t, got, 1, name)
		require.Contains(t, got[0].Command, c.want[0], name)
		require.Contains(t, got[0].Found, c.want[1], name)
		require.NotEmpty(t, got[0].Lasts)
		require.NotEmpty(t, got[0].Gives)
		var text bytes.Buffer
		hintsText(&text, got, plain)
		require.Contains(t, text.String(), "hint: "+got[0].What+": "+got[0].Found+"\n  "+got[0].Command+"\n  lasts: ")
	}
	var text bytes.Buffer
	hintsText(&text, nil, plain)
	require.Equal(t, "hints: no setting that costs speed was found\n", text.String())
}

// doctor shows the hints only if asked, the same ones in text and JSON.
func TestDoctorFixHints(t *testing.T) {
	_, out, _ := call("doctor", "--format", "json")
	require.NotContains(t, out, `"hints"`)
	code, out, errs := call("doctor", "--fix-hints", "--format", "json")
	require.Zero(t, code, errs)
	var d struct{ Hints []hint }
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.NotNil(t, d.Hints)
	_, text, _ := call("doctor", "--fix-hints")
	require.Equal(t, len(d.Hints), strings.Count(text, "\nhint: "))
	for _, h := range d.Hints {
		require.Contains(t, text, h.Command)
	}
}
