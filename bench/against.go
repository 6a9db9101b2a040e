package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// build is a commit's programs: this one, obstacle, and test binaries.
type build struct {
	*measure.Run
	name, bench, obstacle string
}

func newBuild(ctx context.Context, name, root, temp string) (*build, error) {
	b := &build{Run: &measure.Run{Root: root, Temp: temp}, name: name, bench: filepath.Join(temp, "bench")}
	err := os.Mkdir(temp, 0o755)
	if err == nil {
		_, err = b.Command(ctx, nil, "go", "build", "-o", b.bench, "./bench")
	}
	if err == nil {
		b.obstacle, err = b.Build(ctx)
	}
	for _, t := range []benchmark{dispatchBenchmark, trainBenchmark} {
		if err == nil {
			err = t.build(ctx, b.Run)
		}
	}
	return b, err
}

// figure is a figure that two commits are compared by.
type figure struct {
	name, unit string
	larger     bool // is better
}

// lane is a comparison of two commits by some figures.
type lane struct {
	part    string // that measures the same
	figures []figure
	rounds  int // at most
	open    opener
}

// opener returns a function that takes the figures of a build once.
type opener func(ctx context.Context, b *build) (sample func() ([]float64, error), close func(), err error)

// lanes need of an older commit only the flags -kernels and -end of its bench, whose commands have
// not changed, and the command line of its obstacle.
func lanes() []lane {
	return []lane{
		{"sweep", []figure{{"sweep at 256³, one core", "GLUP/s", true}}, 15, sweepLane},
		{"dispatch", []figure{
			{"five handlers dispatched", "ns", false}, {"a segment between clusters, in trains", "ns", false},
			{"a segment between clusters, one by one", "ns", false},
		}, 9, steady(dispatchLane)},
		{"transport", []figure{
			{"loopback: one way, 8 B", "µs", false}, {"loopback: one way, 64 KB", "µs", false},
			{"loopback: 8 B messages", "million/s", true}, {"loopback: 64 KB messages", "GB/s", true},
		}, 15, transportLane},
		{"speedup", []figure{
			{"sync, two peers at 128³", "sweeps/s", true}, {"sync, speedup of two peers", "ratio", true},
			{"async, two peers at 128³", "sweeps/s", true}, {"async, speedup of two peers", "ratio", true},
		}, 5, steady(speedupLane)},
		{"multigrid", []figure{
			{"multigrid 255³ to 1e-6, processor time of the process", "s", false},
			{"multigrid 255³ to 1e-6, processor time of the solve", "s", false},
			{"multigrid 255³, peak memory", "MB", false},
		}, 7, steady(multigridLane)},
		{"memory", []figure{{"memory at 256³, two peers", "bytes/point", false}}, 3, steady(memoryLane)},
		{"simulator", []figure{
			{"sync, segments simulated per second of processor time", "million/s", true},
			{"async, segments simulated per second of processor time", "million/s", true},
		}, 5, steady(simulatorLane)},
	}
}

// against compares this tree with a commit, which it builds in a temporary worktree. Within a round
// both are measured one directly after the other, and every other round in the other order.
func against(ctx context.Context, commit string, p *measure.Program) (err error) {
	r, clean, err := measure.NewRun(ctx, p.Rounds)
	if err != nil {
		return err
	}
	defer clean()
	tree := filepath.Join(r.Temp, "tree")
	if _, err := r.Command(ctx, nil, "git", "worktree", "add", "--detach", tree, commit); err != nil {
		return err
	}
	defer func() {
		_, _ = r.Command(context.WithoutCancel(ctx), nil, "git", "worktree", "remove", "--force", tree)
	}()
	old, err := newBuild(ctx, commit, tree, filepath.Join(r.Temp, "old"))
	if err != nil {
		return fmt.Errorf("commit %s: %w", commit, err)
	}
	tip, err := newBuild(ctx, "this tree", r.Root, filepath.Join(r.Temp, "new"))
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(lanes(), func(l lane) bool { return !p.Wants(l.part) })
	begin, end := tip.Show(make([]time.Duration, len(chosen)))
	defer end()
	fmt.Fprintf(tip.Out(), "| what | unit | %s | this tree | ratio | spread | of the best | verdict |\n", commit)
	fmt.Fprintln(tip.Out(), "|---|---|---|---|---|---|---|---|")
	for i, l := range chosen {
		begin(i, l.part)
		began := time.Now()
		values, err := l.compare(ctx, [2]*build{old, tip}, min(r.Rounds, l.rounds))
		if err != nil {
			return err
		}
		for i, f := range l.figures {
			fmt.Fprintln(tip.Out(), f.row(values[0][i], values[1][i]))
		}
		fmt.Fprintf(tip.Log(), "%s: %v\n", l.part, time.Since(began).Round(time.Second))
	}
	return nil
}

// compare returns the values of the builds by figure and round.
func (l *lane) compare(ctx context.Context, builds [2]*build, rounds int) (values [2][][]float64, err error) {
	var samples [2]func() ([]float64, error)
	for i, b := range builds {
		sample, stop, err := l.open(ctx, b)
		if err != nil {
			return values, fmt.Errorf("%s: %s: %w", l.part, b.name, err)
		}
		defer stop()
		samples[i], values[i] = sample, make([][]float64, len(l.figures))
	}
	for round := range builds[1].Repeat(rounds + 1) { // the first one warms up
		for k := range builds {
			i := (round + k) % 2
			v, err := samples[i]()
			if err != nil {
				return values, fmt.Errorf("%s: %s: %w", l.part, builds[i].name, err)
			}
			for f := range v {
				if round > 0 {
					values[i][f] = append(values[i][f], v[f])
				}
			}
		}
	}
	return values, nil
}

// same is the ratio up to which two commits count as equal.
const same = 1.03

// row returns the row of a figure: medians, and of the ratios of the rounds the median, the
// smallest and the largest; the verdict is that of the median ratio.
func (f *figure) row(old, tip []float64) string {
	ratios := measure.Ratios(tip, old)
	ratio, best := measure.Median(ratios), slices.Min(tip)/slices.Min(old)
	gain := 1 / ratio
	if f.larger {
		gain, best = ratio, slices.Max(tip)/slices.Max(old)
	}
	verdict := "within 3 %"
	if gain > same {
		verdict = "better"
	} else if gain < 1/same {
		verdict = "**worse**"
	}
	return fmt.Sprintf("| %s | %s | %.4g | %.4g | %.3f | %.3f to %.3f | %.3f | %s |",
		f.name, f.unit, measure.Median(old), measure.Median(tip),
		ratio, slices.Min(ratios), slices.Max(ratios), best, verdict)
}

// steady returns the opener of a lane that keeps nothing between two samples.
func steady(sample func(ctx context.Context, b *build) ([]float64, error)) opener {
	return func(ctx context.Context, b *build) (func() ([]float64, error), func(), error) {
		return func() ([]float64, error) { return sample(ctx, b) }, func() {}, nil
	}
}

func sweepLane(ctx context.Context, b *build) (func() ([]float64, error), func(), error) {
	p, err := start(ctx, b.bench, "-kernels", strconv.Itoa(sweepN))
	if err != nil {
		return nil, nil, err
	}
	return func() ([]float64, error) {
		ns, err := p.nanoseconds(fmt.Sprintf("relax %d", sweepTimes))
		return []float64{sweepN * sweepN * sweepN * sweepTimes / ns}, err
	}, p.stop, nil
}

func dispatchLane(ctx context.Context, b *build) (out []float64, err error) {
	for _, t := range []benchmark{dispatchBenchmark, trainBenchmark, singleBenchmark} {
		numbers, err := t.run(ctx, b.Run, 3)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.Min(numbers[0]))
	}
	return out, nil
}

func transportLane(ctx context.Context, b *build) (func() ([]float64, error), func(), error) {
	p, err := openPair(ctx, b.Run, loopback(), b.bench, "-end", kindOurs)
	if err != nil {
		return nil, nil, err
	}
	exchanges := []exchange{latency("", 8, 2000, 0), latency("", 64<<10, 800, 0), smallStream(), largeStream()}
	return func() (out []float64, err error) {
		for _, e := range exchanges {
			leader, other, err := p.do(e.command)
			if err != nil {
				return nil, err
			}
			out = append(out, e.value(leader, other))
		}
		return out, nil
	}, p.close, nil
}

func speedupLane(ctx context.Context, b *build) (out []float64, err error) {
	for _, scheme := range []string{"sync", "async"} {
		one, two, err := oneAndTwo(ctx, b.obstacle, scheme)
		if err != nil {
			return nil, err
		}
		out = append(out, two, two/one)
	}
	return out, nil
}

func multigridLane(ctx context.Context, b *build) ([]float64, error) {
	s, err := measure.Multigrid(ctx, b.obstacle, 255)
	return []float64{s.CPU, s.SolveTime(), s.Resident / 1e6}, err
}

func memoryLane(ctx context.Context, b *build) ([]float64, error) {
	s, err := measure.Sweeps(ctx, b.obstacle, "sync", strconv.Itoa(memoryN), 2, memorySweeps)
	if err != nil {
		return nil, err
	}
	perPoint, _, err := s.BytesPerPoint()
	return []float64{perPoint}, err
}

// simulatorLane takes two runs of each scheme: the difference is what the sweeps cost once all
// peers are connected.
func simulatorLane(ctx context.Context, b *build) (out []float64, err error) {
	const scale, sweeps = 16, 400
	for _, scheme := range []string{"sync", "async"} {
		var segments, cpu [2]float64
		for i, n := range []int{connectSweeps, connectSweeps + sweeps} {
			s, err := measure.Obstacle(ctx, b.obstacle, "simulate", "membrane", "--model", "graphene-eth",
				"--machines", "64", "--n", "256", "--stand-in", strconv.Itoa(scale), "--scheme", scheme,
				"--max-sweeps", strconv.Itoa(n))
			if err != nil {
				return nil, err
			}
			segments[i], cpu[i] = s.Segments, s.CPU
		}
		out = append(out, (segments[1]-segments[0])/(cpu[1]-cpu[0])/1e6)
	}
	return out, nil
}
