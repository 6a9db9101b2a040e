package cli

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/trace"
)

// mostOf returns the greatest value of an integer flag. Smaller bounds, which depend on other flags, and the least values
// are checked where the flag is used.
func mostOf(flag string) int64 {
	switch flag {
	case "peers", "parts", "clusters", "machines", "spares", "keepers", "threads", "seat":
		return problem.MaxPeers
	case "enclose-sweeps":
		return 1e6
	}
	return math.MaxInt32
}

// namedBounds are the smaller bounds that errors of greater numbers name, too.
var namedBounds = map[string]int64{
	"dimension": 3, "ib-blocks": 1 << 20, "ib-block-bytes": 1 << 20, "ib-port": 255, "keepers": 5, "mtu": ether.MaxMTU,
	"overlap": problem.MaxOverlap, "rounds": 1000, "spares": launch.MaxSpares, "threads": 4096, "trace-frames": trace.MaxFrameBytes,
	"trace-size": trace.MaxBytes >> 20,
}

// tooGreat returns the error of an integer flag above mostOf.
func tooGreat(flag, number string) error {
	return usage("--%s %s: at most %d is allowed", flag, number, cmp.Or(namedBounds[flag], mostOf(flag)))
}

// tableFlags are the flags that name a file of any extension, with an example.
var tableFlags = map[string]string{"csv": "table.csv", "latex": "table.tex"}

// longestTime bounds every duration: sums of a few of them do not overflow.
const longestTime = 10 * 365 * 24 * time.Hour

// checkNumbers returns an error for a flag whose number is too large, or not finite, or stands for the name of a file.
func checkNumbers(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		written := f.Value.String()
		switch f.Value.Type() {
		case "string":
			if _, bad := strconv.ParseFloat(written, 64); bad == nil && tableFlags[f.Name] != "" {
				err = usage("--%s %s: want the name of a file, such as %s", f.Name, written, tableFlags[f.Name])
			}
		case "int", "int64":
			if n, bad := strconv.ParseInt(written, 10, 64); bad == nil && n > mostOf(f.Name) {
				err = tooGreat(f.Name, written)
			}
		case "intSlice":
			for _, text := range strings.Split(strings.Trim(written, "[]"), ",") {
				if n, bad := strconv.ParseInt(text, 10, 64); bad == nil && n > mostOf(f.Name) {
					err = tooGreat(f.Name, text)
				}
			}
		case "float64":
			if v, bad := strconv.ParseFloat(written, 64); bad == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				err = usage("--%s %s: want a finite number", f.Name, written)
			}
		case "duration":
			if d, bad := time.ParseDuration(written); bad == nil && (d > longestTime || d < -longestTime) {
				err = usage("--%s %s: at most %v is allowed", f.Name, written, longestTime)
			}
		}
	})
	return err
}
