package member

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
	*Member
	strings.Builder
}

// Names of states, as transcripts have them.
var (
	contacts = [...]string{"connected", "proposing", "asking", "pausing", "alone"}
	entries  = [...]string{"unassigned", "leaving", "opening", "opened", "reporting", "resumable", "resuming", "repairing", "connecting", "queued",
		"entered"}
	tasks    = [...]string{"idle", "preparing", "beginning", "announcing", "unstarted", "relaxing", "relaxed", "saving", "answering"}
	outcomes = [...]string{"in progress", "finished", "reported", "failed"}
	jobNames = [...]string{"nothing", "open", "report", "resume", "repair", "connect", "prepare", "announce", "relax", "await", "keep",
		"answer", "hold", "send"}
)

// String names a job, its number and its epoch.
func (d Do) String() string {
	return fmt.Sprintf("job %d: %s, epoch %d", d.Number, jobNames[d.Job], d.Epoch)
}

// handle lets the member handle an event and records it with its effects, which it returns.
func (r *transcript) handle(now time.Duration, text string, o Event) []Effect {
	effects := r.Step(now, o)
	fmt.Fprintf(r, "%v %s: %s, %s %d, %s %d", now, text, contacts[r.contact], entries[r.entry], r.open, tasks[r.task], r.at)
	if r.Outcome != InProgress {
		fmt.Fprintf(r, ", %s", outcomes[r.Outcome])
	}
	r.WriteString("\n")
	for _, e := range effects {
		fmt.Fprintf(r, "\t%s\n", effectText(e))
	}
	return effects
}

func effectText(e any) string {
	if d, is := e.(Do); is {
		return d.String()
	}
	if l, is := e.(Logged); is {
		s := [...]string{"debug", "info", "warn"}[l.Level] + ": " + l.Text
		for i := 0; i < len(l.Fields); i += 2 {
			s += fmt.Sprintf(", %v %v", l.Fields[i], l.Fields[i+1])
		}
		return s
	}
	return strings.NewReplacer("member.", "", "rendezvous.", "").Replace(fmt.Sprintf("%T%+v", e, e))
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
