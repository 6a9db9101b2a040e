package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	clusterfile "github.com/p2pdc/p2pdc/internal/cluster/file"
)

// What the simulator predicts of this machine, and how near it should come: relative errors
// in per cent of times, with as many peers as cores and with more, and of asynchronous sweeps.
const (
	homeN      = 64
	homeRounds = 5
	homeNear   = 15
	homeMore   = 25
	homeSweeps = 10
)

// The link of the lab between two peers, and their grid.
const (
	homeLabN     = 32
	homeLabRate  = 25_000_000 // bytes a second
	homeLabDelay = time.Millisecond
	homeLabQueue = 256 << 10
	homeLabMTU   = 1500
	homeLabTime  = 2 * time.Minute // that a run may take
)

var homePeers = []int{1, 2, 4, 8}

// rehearsed is what a run took, or takes by the model.
type rehearsed struct {
	Seconds   float64 `json:"seconds"`
	Sweeps    float64 `json:"sequential_equivalent_sweeps"`
	Converged bool    `json:"converged"`
}

// homePlace is where peers talk.
type homePlace int

const (
	onLoopback homePlace = iota
	labWire              // two hosts of the lab: the system limits the rate of the wire
	labLink              // a process emulates rate and delay
)

// homeCase is a run that is both simulated and done, over loopback or in the lab.
type homeCase struct {
	where            homePlace
	peers            int
	scheme           string
	predicted, meant []float64 // seconds, sweeps
	seconds, relaxed []float64 // of what was run
}

func (c *homeCase) String() string {
	where := ""
	switch c.where {
	case labWire:
		where = fmt.Sprintf(", a wire of %d Mbit/s", homeLabRate/125_000)
	case labLink:
		where = fmt.Sprintf(", %v and %d Mbit/s apart", homeLabDelay, homeLabRate/125_000)
	}
	return fmt.Sprintf("%s, %d peers%s", c.scheme, c.peers, where)
}

// athome sets the simulator, calibrated here, beside real runs of processes over loopback. Each
// round calibrates, predicts and then runs, since the speed of a shared machine drifts.
func athome(ctx context.Context, b *bench) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	var cases []*homeCase
	for _, peers := range homePeers {
		for _, scheme := range []string{"sync", "async"} {
			cases = append(cases, &homeCase{peers: peers, scheme: scheme})
		}
	}
	for _, where := range []homePlace{labWire, labLink} {
		for _, scheme := range []string{"sync", "async"} {
			cases = append(cases, &homeCase{where: where, peers: 2, scheme: scheme})
		}
	}
	for round := range min(b.rounds, homeRounds) {
		for _, c := range cases {
			if err := b.home(ctx, c, bin, uint64(round+1)); err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
		}
	}
	for _, c := range cases {
		b.report.add(c.account(runtime.NumCPU())...)
	}
	return nil
}

// home calibrates, predicts and runs.
func (b *bench) home(ctx context.Context, c *homeCase, bin string, seed uint64) error {
	peers, n, mtu, model := strconv.Itoa(c.peers), homeN, 0, filepath.Join(b.tmp, "home.yaml")
	if c.where != onLoopback {
		n, mtu = homeLabN, homeLabMTU
	}
	if _, err := b.command(ctx, nil, bin, "calibrate", "--n", strconv.Itoa(n), "--peers", peers, "--mtu", strconv.Itoa(mtu), "--out", model); err != nil {
		return err
	}
	if c.where != onLoopback {
		if err := c.labModel(model); err != nil {
			return err
		}
	}
	var p, r rehearsed
	if err := b.rehearse(ctx, &p, n, bin, "simulate", "--model", model, "--machines", peers, "--scheme", c.scheme); err != nil {
		return err
	}
	run := func() error {
		return b.rehearse(ctx, &r, n, bin, "solve", "--peers", peers, "--scheme", c.scheme, "--threads", "1", "--together", "1", "--network", "ether")
	}
	if c.where != onLoopback {
		run = func() error { return b.labRun(ctx, c, &r, bin, seed) }
	}
	if err := run(); err != nil {
		return err
	}
	c.predicted, c.meant = append(c.predicted, p.Seconds), append(c.meant, p.Sweeps)
	c.seconds, c.relaxed = append(c.seconds, r.Seconds), append(c.relaxed, r.Sweeps)
	return nil
}

// labModel is the machine as calibrated, with the lab's link for a network. What emulates a delay
// runs on the cores of the peers: each frame takes them what a probe of the link alone found.
func (c *homeCase) labModel(file string) error {
	f, err := clusterfile.Open(file)
	if err != nil {
		return err
	}
	n := &f.Networks[0]
	n.Rate, n.Queue = homeLabRate, homeLabQueue
	if c.where == labLink {
		p, err := labProbe()
		if err != nil {
			return err
		}
		class := &f.Classes[0]
		class.Send.Segment += p.frame
		n.Latency = homeLabDelay + max(0, p.late-class.Wake.Takes)
	}
	return os.WriteFile(file, clusterfile.Format(&f.Description), 0o644)
}

func (r *rehearsed) sound(what string) error {
	if !r.Converged || r.Seconds <= 0 || r.Sweeps <= 0 {
		return fmt.Errorf("%s did not go as told: %+v", what, *r)
	}
	return nil
}

// rehearse runs a command of the program on the reference case, to the tolerance.
func (b *bench) rehearse(ctx context.Context, r *rehearsed, n int, bin, command string, args ...string) error {
	out, err := b.command(ctx, nil, bin, append([]string{command, "membrane", "--n", strconv.Itoa(n), "--tol", "1e-6", "--format", "json", "--log-level", "error"}, args...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, r); err != nil {
		return fmt.Errorf("obstacle %s: %w in %.200s", command, err, out)
	}
	return r.sound("obstacle " + command)
}

// account holds the median of the predictions against the median of what was run.
func (c *homeCase) account(cores int) []measurement {
	predicted, real := over("home", c.String()+": predicted", "s", c.predicted), over("home", c.String()+": real", "s", c.seconds)
	meant, sweeps := over("home", c.String()+": predicted sweeps", "", c.meant), over("home", c.String()+": sweeps", "", c.relaxed)
	limit := float64(homeNear)
	if c.peers > cores {
		limit = homeMore
	}
	off := func(name string, predicted, median, limit float64) measurement {
		return over("home", c.String()+": "+name, "%", []float64{100 * (predicted/median - 1)}).between(-limit, limit)
	}
	out := []measurement{real, predicted, off("error of the time", predicted.Value, real.Value, limit)}
	if c.scheme == "async" {
		out = append(out, sweeps, meant, off("error of the sweeps", meant.Value, sweeps.Value, homeSweeps))
	}
	return out
}
