package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
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
	f := &attachFlags{}
	c := &cobra.Command{
		Use:   "attach HOST:PORT",
		Short: "Fetch the answer of a run, even if its launcher was lost",
		Long: `attach follows a run over several hosts (obstacle solve --rendezvous) until its end,
and prints and writes its answer as solve does. HOST:PORT is the address of the
launcher or, if it was lost, of another keeper; solve prints them when the run
begins. The exit codes are those of solve.

With --http it shows what the process that leads the run knows of it, and then
the answer (docs/page.md).`,
		Example: `  obstacle attach 192.0.2.2:7400 --secret-file run.secret --out membrane.vti`,
		Args:    oneArgument("address"),
		RunE:    func(c *cobra.Command, args []string) error { return a.attach(c.Context(), f, args[0]) },
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

func (a *app) attach(ctx context.Context, f *attachFlags, address string) error {
	if f.secretFile == "" {
		return usage("obstacle attach needs --secret-file FILE, that of the run")
	}
	if err := checkAddress("attach", address); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return usage("--timeout %v: want a positive time", f.timeout)
	}
	for _, o := range f.out {
		if err := output.CheckPath(o); err != nil {
			return badInput(err)
		}
		if output.IsSeries(o) || output.IsExercise(o) {
			return usage("--out %s needs every time step, and attach fetches the last one only", o)
		}
	}
	identity, err := a.identity(f.secretFile)
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
	work, text, o, err := a.fetch(ctx, identity, address, f.timeout, shown)
	if ctx.Err() != nil {
		return &exitError{ExitStopped, errors.New("interrupted before the answer came; the run goes on")}
	}
	if err != nil {
		shown.seen.fail(err)
		return failed(err)
	}
	f.request.catalog, f.request.tol, f.request.scheme = a.catalog, work.Tolerance, work.Scheme
	if f.request.stepMode = "step"; !work.Reconfigure {
		f.request.stepMode = "never"
	}
	w, err := f.request.attached(work, text, o)
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
	steps, err := newRecorder(w, nil, 1) // f.out names no series: .xdmf is one grid here
	if err != nil {
		return err
	}
	shown.answered(&f.request, w)
	return cmp.Or(a.answer(&f.request, w, o, steps, f.out, places), f.request.pages.save())
}

// attached returns the work of a run from what its leader sent.
func (q *request) attached(a *rendezvous.Assign, text []byte, o *launch.Outcome) (*work, error) {
	spec, err := file.UnmarshalSpec(q.catalog.Problems, text)
	if err != nil {
		return nil, err
	}
	w := &work{
		spec: spec, partition: problem.Partition{Cuts: a.Cuts}, method: a.Method, order: a.Order, threads: a.Threads,
		balance: "off", peers: len(o.Hosts),
	}
	if a.Balance {
		w.balance = "on"
	}
	if w.problem, err = spec.Build(a.N); err != nil {
		return nil, err
	}
	if all := w.problem.Steps(); o.Steps > all {
		return nil, fmt.Errorf("an answer of %d time steps for a problem of %d", o.Steps, all)
	}
	labels := make([]string, len(o.Hosts))
	for i, m := range o.Hosts {
		labels[i] = m.Cluster
	}
	w.scheme, err = q.catalog.Scheme(a.Scheme, labels)
	return w, err
}

// fetch follows a run until its end and returns its answer. The process at the address may name another one, which leads
// the run. If that is lost, fetch asks again who leads, for some time.
func (a *app) fetch(
	ctx context.Context, id rendezvous.Identity, address string, limit time.Duration, shown *attached,
) (*rendezvous.Assign, []byte, *launch.Outcome, error) {
	show := func(rendezvous.View) {}
	if bars := a.bars(); bars != nil {
		bar := bars.Add("attached", 1)
		defer a.closeBars(bars)
		defer bar.Remove()
		show = func(v rendezvous.View) {
			bar.Update(time.Duration(v.ElapsedMS)*time.Millisecond, v.Sweep, float64(v.Residual))
		}
	}
	deadline := time.Now().Add(limit)
	for at := address; ; {
		work, text, o, err := fetchFrom(ctx, id, at, &shown.status, func(v rendezvous.View) {
			deadline = time.Now().Add(limit)
			shown.view(&v)
			show(v)
		})
		if err == nil || ctx.Err() != nil {
			return &work, text, o, err
		}
		elsewhere, is := errors.AsType[*launch.ElsewhereError](err)
		if !is && (at == address || errors.Is(err, launch.ErrNoAnswer)) || time.Now().After(deadline) {
			return nil, nil, nil, err
		}
		if is && elsewhere.Leader != at {
			at = elsewhere.Leader
		} else {
			at = address
		}
		a.log.Info().Err(err).Str("next", at).Msg("looking for the process that leads the run")
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func fetchFrom(
	ctx context.Context, id rendezvous.Identity, address string, status *launch.Status, viewed func(rendezvous.View),
) (work rendezvous.Assign, text []byte, o *launch.Outcome, err error) {
	d := net.Dialer{Timeout: rendezvous.HandshakeTime}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return work, nil, nil, fmt.Errorf("no run at %s: %w (if its launcher was lost, give the address of another keeper)",
			address, err)
	}
	conn := rendezvous.NewConn(c, rendezvous.HandshakeTime)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	name, _ := os.Hostname()
	j := rendezvous.Join{Rank: -1, Host: name, Pid: os.Getpid(), Purpose: rendezvous.ToAttach}
	if err := conn.Introduce(id, j); err != nil {
		return work, nil, nil, err
	}
	work, text, o, err = launch.Attach(conn, status, viewed)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = fmt.Errorf("the process at %s ended before the answer came: another keeper may lead the run now", address)
	}
	return work, text, o, err
}
