package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/progress"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// --lose, --kill and --cut become events of the model.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		simulation
		want cluster.Event
	}{
		{simulation{lose: []string{"3@1.5s"}}, cluster.Event{At: 1500 * time.Millisecond, Rank: 3, Lost: true}},
		{simulation{kill: []string{"0@0s"}}, cluster.Event{Killed: true}},
		{simulation{kill: []string{"launcher@2s"}}, cluster.Event{At: 2 * time.Second, Launcher: true, Killed: true}},
		{simulation{lose: []string{"launcher@2s"}}, cluster.Event{At: 2 * time.Second, Launcher: true, Lost: true}},
		{simulation{cut: []string{"2,3@2s-5s"}},
			cluster.Event{At: 2 * time.Second, Until: 5 * time.Second, Apart: []int{2, 3}}},
		{simulation{cut: []string{"launcher,0-2@2s"}},
			cluster.Event{At: 2 * time.Second, Apart: []int{0, 1, 2}, Launcher: true}},
		{simulation{cut: []string{"launcher@2s-3s"}},
			cluster.Event{At: 2 * time.Second, Until: 3 * time.Second, Launcher: true}},
	} {
		got, err := c.losses(4)
		require.NoError(t, err)
		require.Equal(t, []cluster.Event{c.want}, got)
	}
}

// Wrong values are refused, with the flag and what it takes.
func TestLossesAreRefused(t *testing.T) {
	for want, s := range map[string]simulation{
		"--kill 4@1s: want a rank of 0 to 3, or launcher, before the @":  {kill: []string{"4@1s"}},
		"--lose 3: want RANK@TIME":                                       {lose: []string{"3"}},
		"--lose 3@-1s: want a time of 0s or more":                        {lose: []string{"3@-1s"}},
		"--cut 2,3: want RANKS@FROM-TO":                                  {cut: []string{"2,3"}},
		"--cut 2,4@1s: want ranks of 0 to 3, such as 2,3 or 0-3":         {cut: []string{"2,4@1s"}},
		"--cut 3-1@1s: want ranks of 0 to 3":                             {cut: []string{"3-1@1s"}},
		"--cut @1s: want ranks of 0 to 3":                                {cut: []string{"@1s"}},
		"--cut 0-2,1@1s: rank 1 is named twice":                          {cut: []string{"0-2,1@1s"}},
		"--cut launcher,0-3@1s: no machine is on the other side":         {cut: []string{"launcher,0-3@1s"}},
		"--cut 1@x: want a time of 0s or more after the @":               {cut: []string{"1@x"}},
		"--cut 1@2s-1s: want a time after 2s behind the -, such as 3s":   {cut: []string{"1@2s-1s"}},
		"--cut 1@2s-2s: want a time after 2s behind the -, such as 3s; ": {cut: []string{"1@2s-2s"}},
	} {
		_, err := s.losses(4)
		require.ErrorContains(t, err, want)
		require.Equal(t, ExitUsage, exitCode(err))
	}
	q := &request{Spec: rendezvous.Spec{Recover: rendezvous.RecoverLocal}}
	require.NoError(t, (&simulation{keepers: 5}).checkKeepers(q))
	require.ErrorContains(t, (&simulation{keepers: 2}).checkKeepers(q), "--keepers 2: want 1, 3 or 5")
	q.Recover = rendezvous.RecoverOff
	require.ErrorContains(t, (&simulation{keepers: 3}).checkKeepers(q), "with --recover off")
	require.NoError(t, (&simulation{}).checkKeepers(q))
}

// Peers that solve starts cannot be joined by others, and end with it. Processes of an engine join by themselves.
func TestFlagsOfPeersThatJoin(t *testing.T) {
	q := &request{Spec: rendezvous.Spec{Parts: 1, Recover: rendezvous.RecoverLocal, Elastic: true}}
	require.ErrorContains(t, q.checkParts(), "--elastic needs --rendezvous")
	require.Equal(t, ExitUsage, exitCode(q.checkParts()))
	q.hosts = "auto"
	require.Error(t, q.checkParts())
	q.hosts, q.task = "", &task{}
	require.NoError(t, q.checkParts())
	q.task, q.rendezvous = nil, ":0"
	require.NoError(t, q.checkParts())
}

// A simulated run has three keepers unless the flag says otherwise. A run that no process can lead is stopped.
func TestKeepersOfSimulatedRuns(t *testing.T) {
	r := prepared(t, "{relaxation: 4 Mpoint/s}", "async", 4, func(q *request, _ *simulation) {
		q.Recover, q.Suspect = rendezvous.RecoverLocal, defaultSuspect
	})
	require.Equal(t, defaultKeepers, r.Recover.Keepers)
	for _, v := range []string{"0@1ms", "1@1ms", "launcher@1ms"} {
		events, err := (&simulation{kill: []string{v}}).losses(4)
		require.NoError(t, err)
		r.Model.Events = append(r.Model.Events, events...)
	}
	r.simulate(t.Context(), progress.NewLines(func(string) {}))
	require.Equal(t, launch.CutOff, r.figures.Reason)
	require.Equal(t, ExitStopped, exitCode(r.verdict()))
	require.Len(t, r.figures.CutOff, 2)
}
