package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// --rows changes the options of a row for one run. It refuses text that names no option or has no value.
func TestOptionsOfRows(t *testing.T) {
	s := New()
	defaults := microproto.Options{"pacing.gap.ns": 1000, "pacing.burst": 4}
	require.NoError(t, s.Protocols.AddRow(microproto.Row{
		Protocol: "Pacing", Columns: microproto.Columns(), Options: defaults,
		New: func(microproto.Options) (microproto.MicroProtocol, error) { return nil, nil },
	}))
	for text, want := range map[string]microproto.Options{
		"Pacing":                {"pacing.gap.ns": 1000, "pacing.burst": 4},
		"Pacing:":               {"pacing.gap.ns": 1000, "pacing.burst": 4},
		"Pacing:pacing.burst=7": {"pacing.gap.ns": 1000, "pacing.burst": 7},
		"Pacing:pacing.gap.ns=2ms:pacing.burst=-1": {"pacing.gap.ns": 2e6, "pacing.burst": -1},
		"Pacing:pacing.burst=9223372036854775807":  {"pacing.gap.ns": 1000, "pacing.burst": 1<<63 - 1},
	} {
		rows, err := s.Optional("newreno", []string{text})
		require.NoError(t, err, text)
		require.Len(t, rows, 1)
		require.Equal(t, want, rows[0].Options, text)
	}
	require.Equal(t, microproto.Options{"pacing.gap.ns": 1000, "pacing.burst": 4}, defaults)
	for text, why := range map[string]string{
		"Pacing:gap=3": "its options are pacing.burst, pacing.gap.ns", "Pacing:pacing.burst": "no key=value",
		"Pacing:pacing.burst=": "want an integer, or a duration", "Pacing:pacing.burst=9223372036854775808": "want an integer",
		"Pacing:pacing.burst=NaN": "want an integer", "NegativeAck:a=1": "it has no options", "Pace:a=1": "Pacing",
	} {
		_, err := s.Optional("newreno", []string{text})
		require.ErrorContains(t, err, why, text)
	}
	_, err := s.Optional("newreno", []string{"Pacing", "Pacing:pacing.burst=7"})
	require.ErrorContains(t, err, "given twice")
}
