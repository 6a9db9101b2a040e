package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
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

// What the host and other programs may take of the processors, in per cent of what they could work,
// before a round is done again, how often, and for how long in all. Processors that come from
// idleness are warmed up.
const (
	homeTaken   = 3
	homeRepeats = 2
	homeSpare   = 45 * time.Second
	homeWarm    = 2 * time.Second
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

// longest is how much virtual time a prediction may take: on a flooded wire there may be no verdict.
func (p homePlace) longest() time.Duration {
	if p == onLoopback {
		return time.Minute
	}
	return 6 * time.Second
}

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
	rounds           []homeRound
	predicted, meant []float64 // seconds, sweeps
	seconds, relaxed []float64 // of what was run
	taken            []float64 // per cent of the processors' work in each round
	repeated         int
	endless          int // predictions without a verdict
}

// homeRound is a run and the machine as calibrated before and after it: its speed drifts.
type homeRound struct {
	models [2]*cluster.Description
	real   rehearsed
	taken  float64
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

// athome sets the simulator, calibrated here, beside real runs of processes over loopback and in
// the lab. Each round calibrates, runs and calibrates again; what is predicted is the mean of
// both models' predictions, which are made when all has been measured.
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
	warm(homeWarm)
	spare := homeSpare
	for round := range min(b.rounds, homeRounds) {
		for _, c := range cases {
			if err := b.home(ctx, c, bin, uint64(round+1), &spare); err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
		}
	}
	for _, c := range cases {
		if err := b.predict(ctx, c, bin); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		b.report.add(c.account(runtime.NumCPU())...)
	}
	return nil
}

// home does a round: again while others have taken more of the processors than they may, and there
// is time to spare. Whether to repeat, and which to keep, is told by that alone.
func (b *bench) home(ctx context.Context, c *homeCase, bin string, seed uint64, spare *time.Duration) error {
	var kept homeRound
	for try := 0; ; try++ {
		begin, before := time.Now(), processors()
		r, err := b.homeRound(ctx, c, bin, seed)
		if err != nil {
			return err
		}
		r.taken = before.takenUntil(processors())
		if try == 0 || r.taken < kept.taken {
			kept = r
		}
		if try > 0 {
			c.repeated++
			*spare -= time.Since(begin)
		}
		if kept.taken <= homeTaken || try == homeRepeats || *spare < time.Since(begin) {
			break
		}
	}
	c.rounds = append(c.rounds, kept)
	c.taken = append(c.taken, kept.taken)
	c.seconds, c.relaxed = append(c.seconds, kept.real.Seconds), append(c.relaxed, kept.real.Sweeps)
	return nil
}

// homeRound calibrates, runs and calibrates.
func (b *bench) homeRound(ctx context.Context, c *homeCase, bin string, seed uint64) (r homeRound, err error) {
	if r.models[0], err = b.homeModel(ctx, c, bin); err != nil {
		return r, err
	}
	if c.where != onLoopback {
		err = b.labRun(ctx, c, &r.real, bin, seed)
	} else {
		err = b.rehearse(ctx, &r.real, homeN, bin, "solve", "--peers", strconv.Itoa(c.peers), "--scheme", c.scheme, "--threads", "1", "--together", "1", "--network", "ether")
	}
	if err != nil {
		return r, err
	}
	r.models[1], err = b.homeModel(ctx, c, bin)
	return r, err
}

// homeModel calibrates.
func (b *bench) homeModel(ctx context.Context, c *homeCase, bin string) (*cluster.Description, error) {
	if c.where != onLoopback {
		return c.labModel(ctx)
	}
	file := filepath.Join(b.tmp, "home.yaml")
	if _, err := b.command(ctx, nil, bin, "calibrate", "--n", strconv.Itoa(homeN), "--peers", strconv.Itoa(c.peers), "--scheme", c.scheme, "--out", file); err != nil {
		return nil, err
	}
	f, err := clusterfile.Open(file)
	if err != nil {
		return nil, err
	}
	return &f.Description, nil
}

// predict simulates all rounds of a case.
func (b *bench) predict(ctx context.Context, c *homeCase, bin string) error {
	n := homeN
	if c.where != onLoopback {
		n = homeLabN
	}
	of := make([]rehearsed, 2*len(c.rounds))
	err := each(ctx, len(of), func(ctx context.Context, i int) error {
		file := filepath.Join(b.tmp, fmt.Sprintf("home%d.yaml", i))
		if err := os.WriteFile(file, clusterfile.Format(c.rounds[i/2].models[i%2]), 0o644); err != nil {
			return err
		}
		r := &of[i]
		err := b.rehearse(ctx, r, n, bin, "simulate", "--model", file, "--machines", strconv.Itoa(c.peers), "--scheme", c.scheme, "--max-time", c.where.longest().String())
		if err != nil && !r.Converged && r.Seconds >= c.where.longest().Seconds() {
			return nil // counted as that long
		}
		return err
	})
	for i := range of {
		if !of[i].Converged {
			c.endless++
		}
	}
	for i := range c.rounds {
		x, y := &of[2*i], &of[2*i+1]
		c.predicted, c.meant = append(c.predicted, (x.Seconds+y.Seconds)/2), append(c.meant, (x.Sweeps+y.Sweeps)/2)
	}
	return err
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
	if e := json.Unmarshal(out, r); e != nil || err != nil {
		return fmt.Errorf("obstacle %s: %w in %.200s", command, errors.Join(err, e), out)
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
	taken := over("home", c.String()+": taken by others", "%", c.taken)
	taken.Note = fmt.Sprintf("%d rounds done again", c.repeated)
	if c.endless > 0 {
		predicted.Note = fmt.Sprintf("%d of %d without a verdict within %v", c.endless, 2*len(c.predicted), c.where.longest())
	}
	off := func(name string, predicted, median, limit float64) measurement {
		return over("home", c.String()+": "+name, "%", []float64{100 * (predicted/median - 1)}).between(-limit, limit)
	}
	out := []measurement{taken, real, predicted, off("error of the time", predicted.Value, real.Value, limit)}
	if c.scheme == "async" {
		out = append(out, sweeps, meant, off("error of the sweeps", meant.Value, sweeps.Value, homeSweeps))
	}
	return out
}
