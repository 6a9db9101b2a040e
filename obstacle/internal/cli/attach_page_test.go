package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/page"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// The first report of a leader begins the run on the page. It says why something is unknown, and when values come.
func TestAttachedRunsAreShown(t *testing.T) {
	for _, reports := range []bool{true, false} {
		s := &attached{pages: &pages{Shared: monitor.NewShared(), fields: newFields()}, flags: "--secret-file s"}
		s.view(&rendezvous.View{})
		require.Nil(t, s.seen, "the work is not known yet")
		described := rendezvous.Spec{
			Problem: "membrane", N: [3]int{4, 6, 1}, Partition: problem.Partition{Cuts: [3][]int{{0, 2, 4}, {0, 6}, {0, 1}}},
			Scheme: "async", Tolerance: 1e-6, Reports: reports,
		}
		s.view(&rendezvous.View{Spec: &described, Steps: 5})
		s.view(&rendezvous.View{Spec: &described}) // of another leader: the run is the same
		run := s.pages.Snapshot().Runs
		require.Len(t, run, 1)
		require.Equal(t, []int{4, 6}, run[0].Info.N)
		require.Equal(t, 2, run[0].Info.Peers)
		require.Equal(t, 5, run[0].Info.Steps)
		require.True(t, run[0].Info.Attached)
		require.Equal(t, "--secret-file s", run[0].Info.Attach)
		require.Equal(t, reports, run[0].Info.Silent == "")
		_, err := s.pages.fields.Values(t.Context(), page.Wanted{Run: run[0].ID})
		require.ErrorIs(t, err, page.ErrNoValues)
		require.ErrorContains(t, err, "with the answer")

		spec, err := file.Open(nil, "membrane", nil)
		require.NoError(t, err)
		p, err := spec.BuildValid([]int{4, 6, 2})
		require.NoError(t, err)
		q := &request{}
		s.answered(q, &work{spec: spec, problem: p})
		require.Same(t, s.seen, q.observed)
		s.seen.stop()
		s.pages.fields.keep(s.seen.id, p, make([]float64, p.Points()), 1)
		_, err = s.pages.fields.Values(t.Context(), page.Wanted{Run: run[0].ID})
		require.NoError(t, err)
	}
	(&attached{}).view(&rendezvous.View{Spec: &rendezvous.Spec{}}) // without a page
}

// The leader and its keepers reach the model, and another leader is marked once.
func TestLeadersAreMarked(t *testing.T) {
	p := &pages{Shared: monitor.NewShared(), fields: newFields()}
	s := &attached{pages: p}
	s.view(&rendezvous.View{Spec: &rendezvous.Spec{Partition: problem.Partition{Cuts: [3][]int{{0, 1}, {0, 1}, {0, 1}}}}})
	s.seen.stop() // no copies of the status meanwhile
	for _, term := range []register.Term{
		{Number: 1, Leader: "a:1", Keepers: []string{"a:1", "b:1", "c:1"}}, {Number: 2, Leader: "b:1", Keepers: []string{"b:1"}},
		{Number: 3, Leader: "b:1", Keepers: []string{"b:1", "c:1", "d:1"}},
	} {
		state := s.status.State()
		state.Term = term
		p.Add(s.seen.id, eventsOf(&state, 1)...)
	}
	run := p.Snapshot().Runs[0]
	require.Len(t, run.Marks, 1)
	require.Equal(t, "b:1 leads the run, after a:1", run.Marks[0].Text)
}

// The command that shows a run again has the flags of this one, quoted for a shell.
func TestFlagsOfAttach(t *testing.T) {
	var none *pages
	require.Equal(t, "--secret-file FILE", none.again(""))
	p := &pages{at: "127.0.0.1:8080", flags: &pageFlags{tokenFile: "it's"}}
	require.Equal(t, `--secret-file 'my run' --http 127.0.0.1:8080 --http-token-file 'it'\''s'`, p.again("my run"))
	p.flags = &pageFlags{token: tokenNone}
	require.Equal(t, `--secret-file s --http 127.0.0.1:8080 --http-token none`, p.again("s"))
}
