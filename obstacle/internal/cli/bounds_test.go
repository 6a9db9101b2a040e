package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// No command accepts an extreme number in any of its flags.
func TestExtremeNumbersOfEveryFlag(t *testing.T) {
	extremes := map[string][]string{
		"int": {"9223372036854775807", "4611686018427387905", "17592186044416"}, "int64": {"9223372036854775807"},
		"float64": {"NaN", "Inf", "-Inf"}, "duration": {"2562047h47m16s", "-2562047h"},
	}
	checked := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			for _, x := range extremes[f.Value.Type()] {
				was := f.Value.String()
				if c.Flags().Set(f.Name, x) == nil {
					require.ErrorContains(t, checkNumbers(c.Flags()), "--"+f.Name, "%s: %s", c.Name(), x)
					checked++
				}
				require.NoError(t, f.Value.Set(was))
				f.Changed = false
			}
			if numbers := extremes[f.Value.Type()]; numbers != nil {
				require.NoError(t, checkNumbers(c.Flags()), "the default of --%s", f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{catalog: catalog.New()}).root())
	require.Greater(t, checked, 100)
}

// Such a number ends the program with exit code 2 and a sentence.
func TestExtremeNumbersEndTheProgram(t *testing.T) {
	const most = "9223372036854775807"
	for _, args := range [][]string{
		{"solve", "membrane", "--n", "8", "--parts", "4611686018427387905"},
		{"simulate", "membrane", "--n", "8", "--parts", "4611686018427387905"},
		{"simulate", "membrane", "--n", "8", "--machines", most}, {"solve", "membrane", "--n", most},
		{"solve", "membrane", "--n", "8", "--clusters", most}, {"solve", "membrane", "--n", "8", "--peers", most},
		{"solve", "membrane", "--n", "8", "--enclose", "--enclose-sweeps", most},
		{"solve", "membrane", "--n", "8", "--max-time", "2562047h"}, {"solve", "membrane", "--n", "8", "--tol", "NaN"},
		{"solve", "membrane", "--n", "8", "--scheme", "delay:" + most}, {"solve", "membrane", "--n", "8", "--spares", most},
		{"solve", "membrane", "--n", "8", "--coarse", most}, {"solve", "membrane", "--n", "8", "--inner-cycles", most},
		{"compare", "membrane", "--n", "8", "--peers", "2," + most}, {"compare", "membrane", "--n", "8", "--peers", "100000"},
		{"solve", "membrane", "--n", "8", "--negative-ack=NaN"}, {"compare", "membrane", "--n", "8", "--latex=NaN"},
		{"compare", "membrane", "--n", "8", "--model", "graphene-eth", "--csv", "-1"},
		{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "none", "--listen=-1"},
		{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "none", "--listen=NaN"},
		{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "none", "--param=NaN"},
		{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "none", "--problem", "ball2d", "--param=NaN"},
		{"solve", "membrane", "--n", "8", "--partition", most + "x" + most + "x1"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, ExitUsage, Main(t.Context(), args, catalog.New(), &out, &out, &errs), "%q: %s", args, &errs)
		require.NotEmpty(t, errs.String())
		require.Less(t, errs.Len(), 1000)
	}
}

// The error names the bound of the flag, not that of the parser, however large the number is.
func TestExtremeNumbersNameTheBoundOfTheFlag(t *testing.T) {
	for flag, most := range map[string]string{
		"mtu": "65535", "ib-port": "255", "ib-blocks": "1048576", "ib-block-bytes": "1048576", "rounds": "1000", "threads": "4096",
		"spares": "1024", "overlap": "8", "peers": "65536",
	} {
		var out, errs bytes.Buffer
		args := []string{"compare", "membrane", "--n", "8", "--" + flag, "9223372036854775807"}
		require.Equal(t, ExitUsage, Main(t.Context(), args, catalog.New(), &out, &out, &errs), flag)
		require.Contains(t, errs.String(), "--"+flag+" 9223372036854775807: at most "+most+" is allowed", flag)
	}
}
