package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
)

type peerFlags struct {
	peer.Options
	ports      string
	secretFile string
	problem    string
	params     []string
	trace      traceFlags
	answer     int  // file descriptor of shared memory; 0: none
	spawned    bool // started by a launcher, which holds the other end of standard input
}

func (a *app) peerCommand() *cobra.Command {
	f := &peerFlags{Options: peer.Options{Catalog: a.catalog, OwnProcess: true}}
	c := &cobra.Command{
		Use:   "peer",
		Short: "Run one peer of a run over several hosts",
		Long: `peer joins the run whose launcher waits at --rendezvous (obstacle solve PROBLEM
--peers K --rendezvous ADDR --secret-file FILE). It receives its rank and its part
of the problem from the launcher and exchanges halos with the other peers directly.
The first line of the secret file must be the same on all hosts. obstacle secret
generates such a file, and - reads the secret from standard input. Both ends of a
connection prove over TLS 1.3 that they know the secret, and messages between hosts
are encrypted and authenticated (docs/security.md).

SIGTERM makes the process leave: its part of the grid moves to another process, and
the run goes on. Ctrl-C requests an early end of the run. Before the process has its
part of the run, both end it at once with exit code 3. A peer that joins while the
run is in progress waits as a spare one, or takes parts with solve --elastic.`,
		Example: `  obstacle secret run.secret
  scp -p run.secret other-host:
  obstacle peer --rendezvous 192.0.2.1:7400 --listen 192.0.2.2 --port-range 7500-7599 --secret-file run.secret`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.peer(c.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.Rendezvous, "rendezvous", "", "HOST:PORT of the launcher, or several of its addresses, separated by commas (required)")
	fl.StringVar(&f.Listen, "listen", "", "address of this host that other peers reach (default: all addresses)")
	fl.StringVar(&f.ports, "port-range", "", "A-B: ports to listen on (default: any)")
	fl.StringVar(&f.secretFile, "secret-file", "", "file with the run's secret; - for standard input (required)")
	fl.StringVar(&f.Protect, "protect", "", "take part only if the run has this --protect: auto, always or never")
	fl.StringVar(&f.Rail.Network, "network", "",
		"take part only over this network; ether: UDP only; auto: as the run requires (default)")
	f.Rail.Add(fl)
	fl.IntVar(&f.Rank, "seat", -1, "request this rank (-1: any)")
	fl.StringVar(&f.problem, "problem", "", "take part only if the run solves this problem")
	fl.StringArrayVar(&f.params, "param", nil, "with --problem: NAME=VALUE of a built-in problem (repeatable)")
	f.trace.add(fl, "record what the node does, and write it to FILE")
	fl.DurationVar(&f.WaitTime, "join-timeout", 10*time.Minute, "how long to wait for the launcher")
	fl.DurationVar(&f.Hold, "hold", time.Hour,
		"if the launcher is lost and this process leads the run: how long it keeps the answer for obstacle attach")
	fl.IntVar(&f.answer, "answer", 0, "file descriptor of shared memory for the answer")
	fl.BoolVar(&f.spawned, "spawned", false, "read the run's key from standard input and end with the launcher")
	_ = errors.Join(fl.MarkHidden("answer"), fl.MarkHidden("spawned")) // both flags exist
	return c
}

func (a *app) peer(ctx context.Context, f *peerFlags) error {
	if f.Rendezvous == "" || f.secretFile == "" && !f.spawned {
		return usage("obstacle peer needs --rendezvous HOST:PORT and --secret-file FILE; see obstacle peer --help")
	}
	all := strings.Split(f.Rendezvous, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
		if err := checkAddress("--rendezvous", all[i]); err != nil {
			return err
		}
	}
	if len(all) > host.MaxAddresses {
		return usage("--rendezvous: %d addresses; want %d at most", len(all), host.MaxAddresses)
	}
	f.Rendezvous, f.Others = all[0], all[1:]
	if err := checkWords("protect", f.Protect); err != nil {
		return err
	}
	if f.answer < 0 {
		return usage("--answer %d: want a file descriptor; it is reserved for obstacle solve", f.answer)
	}
	if len(f.params) > 0 && f.problem == "" {
		return usage("--param %s needs --problem, the problem whose parameter it is", f.params[0])
	}
	if err := f.checkListen(); err != nil {
		return err
	}
	if err := f.trace.check(); err != nil {
		return err
	}
	if err := f.checkRail(a.catalog.Links.Names()); err != nil {
		return err
	}
	var err error
	if f.PortLow, f.PortHigh, err = portRange(f.ports); err != nil {
		return badInput(err)
	}
	f.DialTime, f.Log = f.WaitTime, a.log
	if f.problem != "" {
		if f.Expect, err = file.Open(a.catalog.Problems, f.problem, f.params); err != nil {
			return badInput(err)
		}
	}
	if f.answer > 0 {
		shared := os.NewFile(uintptr(f.answer), "answer")
		defer shared.Close()
		f.Answer = func(points int) ([]float64, error) { return host.MapArray(shared, points) }
	}
	leave := make(chan struct{})
	ctx, stop := a.interruptsOr(ctx, leave)
	defer stop()
	f.Interrupt, f.Leave, f.Continue = a.interrupt, leave, a.continueSaver
	if f.Bound = f.spawned; f.spawned {
		f.Identity, ctx, err = a.inheritedIdentity(ctx)
	} else {
		f.Waiting = func(what string) { a.say("waiting for " + what + "; Ctrl-C ends the program") }
		f.Identity, err = a.identity(ctx, f.secretFile)
	}
	if err != nil {
		return badInput(err)
	}
	err = f.trace.recorded(f.trace.file, &f.Options, a.log, func() error { return peer.Run(ctx, f.Options) })
	if ctx.Err() != nil && err != nil && !f.spawned && !errors.Is(err, peer.ErrInterrupted) {
		return endedAtOnce()
	}
	return f.outcome(err)
}

// checkListen returns an error if this process cannot listen on the address of --listen.
func (f *peerFlags) checkListen() error {
	if f.Listen == "" {
		return nil
	}
	if _, err := strconv.ParseFloat(f.Listen, 64); err == nil || strings.HasPrefix(f.Listen, "-") { // no look-up
		return usage("--listen %s: want an address or the name of this host, such as 10.0.0.2", f.Listen)
	}
	address := net.JoinHostPort(f.Listen, "0")
	l, err := net.Listen("tcp", address)
	if err != nil {
		return usage("--listen %s: %w; give an address of this host", f.Listen, listenReason(err))
	}
	return l.Close()
}

// checkRail returns an error for invalid flags and for a host without the required network.
func (f *peerFlags) checkRail(links []string) error {
	if err := f.Rail.Check(links); err != nil {
		return badInput(err)
	}
	if _, software, _ := rail.SoftwareRanks(f.Rail.Device, 0); software {
		return usage("--ib-device %s: software adapters connect peers of one process only: obstacle solve "+
			"--in-process", f.Rail.Device)
	}
	if err := rail.SharedHere(f.Rail.Network, false); err != nil {
		return usage("--network %s: %w", f.Rail.Network, err)
	}
	if f.Rail.Network != rail.IB {
		return nil
	}
	if _, err := f.Rail.Available(rendezvous.Rails{}, 1); err != nil {
		return usage("--network ib: %w", err)
	}
	return nil
}

// outcome returns err without its text if the launcher reports it to the same user.
func (f *peerFlags) outcome(err error) error {
	if _, reported := errors.AsType[*peer.ReportedError](err); f.spawned && reported {
		return &exitError{code: ExitFailed}
	}
	if errors.Is(err, peer.ErrCutOff) || errors.Is(err, peer.ErrInterrupted) || errors.Is(err, launch.ErrStopped) {
		return &exitError{ExitStopped, err}
	}
	_, unfit := errors.AsType[*peer.UnfitError](err)
	if _, refused := errors.AsType[*rendezvous.RefusedError](err); refused || unfit { // nothing was run
		return badInput(err)
	}
	return failed(err)
}

func portRange(s string) (low, high int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, found := strings.Cut(s, "-")
	low, err1 := strconv.Atoi(a)
	high, err2 := strconv.Atoi(b)
	if !found || err1 != nil || err2 != nil || low < 1 || high > 65535 || low > high {
		return 0, 0, fmt.Errorf("--port-range %q: want A-B with 1 ≤ A ≤ B ≤ 65535", s)
	}
	return low, high, nil
}
