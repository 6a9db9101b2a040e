package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/progress"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems/file"
)

// attachFlags are the flags of attach.
type attachFlags struct {
	request     request
	secretFile  string
	timeout     time.Duration
	out, probes []string
	page        pageFlags
}

func (a *app) attachCommand() *cobra.Command {
	f := &attachFlags{request: request{Spec: rendezvous.Spec{PeerTimeout: defaultPeerTimeout}}}
	c := &cobra.Command{
		Use:   "attach HOST:PORT…",
		Short: "Fetch the answer of a run, even if its launcher was lost",
		Long: `attach follows a run over several hosts (obstacle solve --rendezvous) until its end,
and prints and writes its answer as solve does. HOST:PORT is the address of the
launcher or, if it was lost, of another keeper; solve prints them when the run
begins. Give several addresses if some keepers may be lost: the run is found if one
of them answers. Commas separate the addresses of one keeper, of which the first that
answers counts. The exit codes are those of solve.

With --http it shows what the process that leads the run knows of it, and then
the answer (docs/page.md).`,
		Example: `  obstacle attach 192.0.2.2:7400 --secret-file run.secret --out membrane.vti`,
		RunE:    func(c *cobra.Command, args []string) error { return a.attach(c.Context(), f, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.secretFile, "secret-file", "", "file with the run's secret (required)")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "how long to look for the process that leads the run")
	fl.StringArrayVar(&f.out, "out", nil,
		"write the solution (.vti, .vtu, .xdmf, .npy, .png, .csv) or the free boundary (.vtp); repeatable")
	fl.StringArrayVar(&f.probes, "probe", nil, "X,Y,Z: print u at the nearest grid point; repeatable")
	f.request.enclosing.add(fl)
	f.page.add(fl)
	return c
}

func (a *app) attach(ctx context.Context, f *attachFlags, keepers []string) error {
	if len(keepers) == 0 {
		return usage("obstacle attach needs the address of the launcher or of another keeper of the run; " +
			"solve prints them")
	}
	if f.secretFile == "" {
		return usage("obstacle attach needs --secret-file FILE, that of the run")
	}
	for _, several := range keepers {
		for address := range strings.SplitSeq(several, ",") {
			if err := checkAddress("attach", address); err != nil {
				return err
			}
		}
	}
	if f.timeout <= 0 {
		return usage("--timeout %v: want a positive time", f.timeout)
	}
	if err := f.request.enclosing.checkSweeps(); err != nil {
		return err
	}
	for _, o := range f.out {
		if err := output.CheckPath(o); err != nil {
			return badInput(err)
		}
		if output.IsSeries(o) || output.IsExercise(o) {
			return usage("--out %s needs every time step, and attach fetches the last one only", o)
		}
	}
	identity, err := a.identity(ctx, f.secretFile)
	if err != nil {
		return badInput(err)
	}
	ctx, stop := stoppable(ctx)
	defer stop()
	if f.request.pages, err = a.openPages(&f.page); err != nil {
		return err
	}
	defer f.request.pages.close()
	shown := &attached{pages: f.request.pages, flags: f.request.pages.again(f.secretFile)}
	run, text, o, err := a.fetch(ctx, identity, keepers, f.timeout, shown)
	if ctx.Err() != nil {
		return &exitError{ExitStopped, errors.New("interrupted before the answer came; the run goes on")}
	}
	if err != nil {
		shown.seen.fail(err)
		return failed(err)
	}
	f.request.catalog = a.catalog
	w, err := f.request.attached(run, text, o)
	if err != nil {
		return failed(err)
	}
	if err := f.request.enclosing.check(w.problem); err != nil {
		return err
	}
	for _, name := range f.out {
		if err := output.CheckProblem(name, w.problem); err != nil {
			return badInput(err)
		}
	}
	places, err := probePoints(f.probes, w.problem)
	if err != nil {
		return badInput(err)
	}
	steps, err := newRecorder(w, nil, 1, 0) // f.out names no series: .xdmf is one grid here
	if err != nil {
		return err
	}
	shown.answered(&f.request, w)
	return cmp.Or(a.answer(ctx, &f.request, w, o, steps, f.out, places), a.report(ctx, f.request.pages, f.request.PeerTimeout))
}

// attached returns the work of a run from what its leader sent, and takes the settings of the run. The time for which it
// waits for files remains that of this process.
func (q *request) attached(run *rendezvous.Spec, text []byte, o *launch.Outcome) (*work, error) {
	spec, err := file.UnmarshalSpec(q.catalog.Problems, text)
	if err != nil {
		return nil, err
	}
	own := q.PeerTimeout
	q.Spec, q.stepMode = *run, "step"
	if q.PeerTimeout = own; !run.Reconfigure {
		q.stepMode = "never"
	}
	w := &work{
		spec: spec, partition: run.Partition, method: run.Method, order: run.Order, threads: run.Threads,
		balance: "off", peers: len(o.Hosts) / max(1, run.Parts), methodWhy: run.MethodWhy, partitionWhy: run.PartitionWhy,
	}
	if run.Balance || run.BalanceParts {
		w.balance = "on"
	}
	if w.problem, err = spec.Build(run.N); err != nil {
		return nil, err
	}
	if all := w.problem.Steps(); o.Steps > all {
		return nil, fmt.Errorf("an answer of %d time steps for a problem of %d", o.Steps, all)
	}
	labels := make([]string, len(o.Hosts))
	for i, m := range o.Hosts {
		labels[i] = m.Cluster
	}
	w.scheme, err = q.catalog.Scheme(run.Scheme, labels)
	return w, err
}

// fetch follows a run until its end and returns its answer. It looks for the process that leads the run at the
// addresses of keepers. If that process is lost, fetch looks for the next one, for some time.
func (a *app) fetch(
	ctx context.Context, id rendezvous.Identity, keepers []string, limit time.Duration, shown *attached,
) (*rendezvous.Spec, []byte, *launch.Outcome, error) {
	bars := a.bars()
	defer a.closeBars(bars)
	shows := &search{bars: bars}
	shows.begin()
	defer shows.end()
	deadline := time.Now().Add(limit)
	s := newLeaderSearch(keepers)
	for {
		at := s.at
		run, text, o, err := fetchFrom(ctx, id, at, &shown.status, func(v rendezvous.View) {
			deadline = time.Now().Add(limit)
			s.learn(v.Term.Keepers)
			shown.view(&v)
			a.sayOnce(shown, v.Ranks)
			shows.found().Update(time.Duration(v.ElapsedMS)*time.Millisecond, v.Sweep, float64(v.Residual))
		})
		if err == nil || ctx.Err() != nil {
			return &run, text, o, err
		}
		if errors.Is(err, launch.ErrNoAnswer) {
			return nil, nil, nil, err
		}
		if wrong := s.failed(err); wrong != nil || time.Now().After(deadline) {
			return nil, nil, nil, cmp.Or(wrong, err)
		}
		shows.begin()
		a.log.Info().Err(err).Str("next", s.at).Msg("looking for the process that leads the run")
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// search shows that attach looks for the process that leads a run, and the run once that is found.
type search struct {
	bars *progress.Bars
	bar  *progress.Bar // nil while it looks
	stop func()        // ends the wait; nil: none is shown
}

// begin shows the wait.
func (s *search) begin() {
	if s.stop == nil {
		s.end()
		s.stop = s.bars.Wait("looking for the process that leads the run")
	}
}

// found returns the bar of the run.
func (s *search) found() *progress.Bar {
	if s.bar == nil {
		s.end()
		s.bar = s.bars.Add("attached", 1)
	}
	return s.bar
}

// end ends what is shown.
func (s *search) end() {
	if s.stop != nil {
		s.stop()
	}
	if s.bar != nil {
		s.bar.Remove()
	}
	s.stop, s.bar = nil, nil
}

// leaderSearch chooses at which address fetch looks for the process that leads a run: at those of keepers in turn, and
// at those that they name.
type leaderSearch struct {
	at      string // where to look next
	keepers []string
	turn    int     // index of the keeper that was asked last
	named   bool    // at was named by a keeper
	errors  []error // of keepers that were asked in turn, since one has answered
}

func newLeaderSearch(keepers []string) *leaderSearch {
	return &leaderSearch{at: keepers[0], keepers: keepers}
}

// learn adds the keepers that the process at s.at has named. It leads the run.
func (s *leaderSearch) learn(keepers []string) {
	s.errors = nil
	for _, k := range keepers {
		if !slices.Contains(s.keepers, k) {
			s.keepers = append(s.keepers[:len(s.keepers):len(s.keepers)], k)
		}
	}
}

// failed chooses the next address after an error at s.at. It returns an error if no keeper has answered.
func (s *leaderSearch) failed(err error) error {
	elsewhere, answered := errors.AsType[*launch.ElsewhereError](err)
	switch {
	case answered:
		s.errors = nil
		if elsewhere.Leader != "" && elsewhere.Leader != s.at {
			s.at, s.named = elsewhere.Leader, true
			return nil
		}
	case !s.named:
		if s.errors = append(s.errors, err); len(s.errors) == len(s.keepers) {
			return s.unfound()
		}
	}
	s.turn = (s.turn + 1) % len(s.keepers)
	s.at, s.named = s.keepers[s.turn], false
	return nil
}

// unfound returns the errors of all keepers as one.
func (s *leaderSearch) unfound() error {
	out := s.errors[0]
	for _, err := range s.errors[1:] {
		out = fmt.Errorf("%w; %w", out, err)
	}
	if slices.ContainsFunc(s.errors, func(err error) bool { return !errors.Is(err, driver.ErrUnauthenticated) }) {
		out = fmt.Errorf("%w (other keepers may still be there: give the addresses of all)", out)
	}
	return out
}

func fetchFrom(
	ctx context.Context, id rendezvous.Identity, address string, status *launch.Status, viewed func(rendezvous.View),
) (run rendezvous.Spec, text []byte, o *launch.Outcome, err error) {
	c, err := rendezvous.Dial(ctx, rendezvous.HandshakeTime, address)
	if err != nil {
		return run, nil, nil, fmt.Errorf("no run at %s: %w", address, err)
	}
	conn := rendezvous.NewConn(c, rendezvous.HandshakeTime)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	name, _ := os.Hostname()
	j := rendezvous.Join{Rank: -1, Host: name, Pid: os.Getpid(), Purpose: rendezvous.ToAttach}
	if err := conn.Introduce(id, j); err != nil {
		return run, nil, nil, err
	}
	run, text, o, err = launch.Attach(conn, status, viewed)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = fmt.Errorf("the process at %s ended before the answer came", address)
	}
	return run, text, o, err
}
