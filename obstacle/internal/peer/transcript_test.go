package peer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// transcript is a member and a text of what happens to it and of the effects, in their order.
type transcript struct {
	*member
	strings.Builder
}

var contacts = [...]string{"connected", "proposing", "asking", "pausing", "alone"}

// handle lets the member handle an event and records it with its effects, which it returns.
func (r *transcript) handle(now time.Duration, text string, o event) []effect {
	effects := r.step(now, o)
	fmt.Fprintf(r, "%v %s: %s\n", now, text, contacts[r.contact])
	for _, e := range effects {
		fmt.Fprintf(r, "\t%s\n", effectText(e))
	}
	return effects
}

func effectText(e effect) string {
	if l, is := e.(logged); is {
		s := [...]string{"debug", "info", "warn"}[l.level] + ": " + l.text
		for i := 0; i < len(l.fields); i += 2 {
			s += fmt.Sprintf(", %v %v", l.fields[i], l.fields[i+1])
		}
		return s
	}
	return strings.NewReplacer("peer.", "", "rendezvous.", "").Replace(fmt.Sprintf("%T%+v", e, e))
}

// requireGolden compares the transcript with a golden file.
func (r *transcript) requireGolden(t *testing.T, name string) {
	file := filepath.Join("testdata", "transcripts", strings.NewReplacer(", ", "-", " ", "-").Replace(name)+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(r.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), r.String(), "-update writes the file")
}
