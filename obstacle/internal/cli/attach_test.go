package cli

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/progress"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// The process that leads a run is looked for at all keepers in turn, and where they say that it is.
func TestLeaderSearch(t *testing.T) {
	silent := errors.New("connection refused")
	leads := func(at string) error { return &launch.ElsewhereError{Leader: at} }
	for name, c := range map[string]struct {
		keepers []string
		learns  []string // before the first error
		errors  []error
		at      []string // after each error; "": the search ends
	}{
		"one keeper":     {[]string{"a"}, nil, []error{silent}, []string{""}},
		"all are silent": {[]string{"a", "b", "c"}, nil, []error{silent, silent, silent}, []string{"b", "c", ""}},
		"named":          {[]string{"a"}, nil, []error{leads("b")}, []string{"b"}},
		"named but lost": {
			[]string{"a"}, nil, []error{leads("b"), silent, leads("b"), silent}, []string{"b", "a", "b", "a"},
		},
		"names itself": {[]string{"a", "b"}, nil, []error{leads("a"), leads("")}, []string{"b", "a"}},
		"one answers": {
			[]string{"a", "b"}, nil, []error{silent, leads("b"), silent, silent}, []string{"b", "a", "b", ""},
		},
		"learnt": {[]string{"a"}, []string{"a", "b", "c"}, []error{silent, silent, silent}, []string{"b", "c", ""}},
		"the launcher was lost": {
			[]string{"a", "b", "c"}, nil, []error{silent, leads("a"), silent, leads("c")}, []string{"b", "a", "c", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLeaderSearch(c.keepers)
			require.Equal(t, c.keepers[0], s.at)
			s.learn(c.learns)
			for i, err := range c.errors {
				wrong := s.failed(err)
				require.Equal(t, c.at[i] == "", wrong != nil, "error %d: %v", i, wrong)
				if wrong == nil {
					require.Equal(t, c.at[i], s.at, "error %d", i)
				}
			}
		})
	}
}

func TestUnfoundLeader(t *testing.T) {
	s := newLeaderSearch([]string{"a", "b"})
	require.NoError(t, s.failed(errors.New("a is silent")))
	err := s.failed(driver.ErrUnauthenticated)
	require.ErrorIs(t, err, driver.ErrUnauthenticated)
	require.EqualError(t, err, "a is silent; "+driver.ErrUnauthenticated.Error()+
		" (other keepers may still be there: give the addresses of all)")
	s = newLeaderSearch([]string{"a"})
	require.EqualError(t, s.failed(driver.ErrUnauthenticated), driver.ErrUnauthenticated.Error(), "the secret is wrong")
}

// The answer of a run that another process has started tells the settings of that run.
func TestAttachedRunsKeepTheirSettings(t *testing.T) {
	membrane, err := file.Open(nil, "membrane", nil)
	require.NoError(t, err)
	cut, err := problem.Slabs([3]int{4, 4, 4}, 2, nil)
	require.NoError(t, err)
	run := rendezvous.Spec{
		Problem: "membrane", N: [3]int{4, 4, 4}, Partition: cut, Scheme: "sync", Method: problem.MethodConfig{Name: problem.SOR},
		Tolerance: 1e-7, Seed: 5, Recover: rendezvous.RecoverExact, BalanceParts: true, PeerTimeout: time.Hour, Threads: 2,
	}
	a := &app{catalog: catalog.New()}
	q := &request{Spec: rendezvous.Spec{PeerTimeout: time.Second}, catalog: a.catalog}
	w, err := q.attached(&run, membrane.Marshal(), &launch.Outcome{Hosts: make([]rendezvous.Member, 2)})
	require.NoError(t, err)
	s := a.describe(q, w)
	require.Equal(t, rendezvous.RecoverExact, s.Recover)
	require.EqualValues(t, 5, s.Seed)
	require.Equal(t, "on", s.Balance)
	require.Equal(t, 1e-7, s.Tolerance)
	require.Equal(t, "never", q.stepMode)
	require.Equal(t, time.Second, q.PeerTimeout, "for files of this process")
}

// Before a run is found, and after its leader was lost, attach says that it looks for one, not that nothing is relaxed.
func TestAttachSaysThatItLooksForTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		s := &search{bars: progress.NewLines(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		})}
		s.begin()
		time.Sleep(1500 * time.Millisecond)
		s.begin()
		time.Sleep(time.Second)
		s.found().Update(time.Second, 10, 0.5)
		s.found().Update(time.Second, 10, 0.5)
		time.Sleep(1500 * time.Millisecond)
		s.begin()
		time.Sleep(1500 * time.Millisecond)
		s.end()
		s.end()
		time.Sleep(time.Hour)
		const looks = "looking for the process that leads the run: "
		require.Len(t, lines, 4)
		require.Equal(t, []string{looks + "1.0 s", looks + "2.0 s"}, lines[:2])
		require.Contains(t, lines[2], "attached: residual 5.00e-01")
		require.Equal(t, looks+"1.0 s", lines[3])
	})
}

// Commas separate the addresses of one keeper.
func TestAttachTakesSeveralAddressesOfAKeeper(t *testing.T) {
	a := &app{catalog: catalog.New()}
	for keeper, err := range map[string]string{
		"10.0.0.1:7000,[fd00::1]:7000": "--timeout", // what is checked next
		"10.0.0.1:7000,":               `attach "": want HOST:PORT`,
		"10.0.0.1:7000,10.0.0.2":       `attach "10.0.0.2": want HOST:PORT`,
	} {
		require.ErrorContains(t, a.attach(t.Context(), &attachFlags{secretFile: "none"}, []string{keeper}), err)
	}
}
