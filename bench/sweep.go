package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

const (
	sweepN     = 256
	sweepTimes = 10 // sweeps of one timing
	checkN     = 40
)

// contestant is one way to relax: a process and the word it is told.
type contestant struct {
	name, word string
	process    *process
	n, times   int // points an axis and repetitions; 0: sweepN, sweepTimes
}

// process is a worker, of this program or of the C one.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(ctx context.Context, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, in, bufio.NewScanner(out)}, nil
}

// tell sends a line and reads the nanoseconds.
func (p *process) tell(line string) (float64, error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return 0, err
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("%s: no answer to %q", filepath.Base(p.cmd.Path), line)
	}
	return strconv.ParseFloat(p.out.Text(), 64)
}

func (p *process) stop() {
	p.in.Close()
	_ = p.cmd.Wait()
}

// sweeps times a sweep at 256³ on one core: Go, Go with vector types, assembly,
// C, and the memory bound, all in turn in every round.
func sweeps(ctx context.Context, b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker, err := start(ctx, self, "-worker", strconv.Itoa(sweepN))
	if err != nil {
		return err
	}
	defer worker.stop()
	var field []contestant
	for _, k := range kernel.All() {
		if k.Name() != "reference" {
			field = append(field, contestant{name: k.Name(), word: k.Name(), process: worker})
		}
	}
	if simd, err := b.vectorWorker(ctx); err != nil {
		b.report.add(measurement{Part: "sweep", Name: "Go with vector types", Note: "skipped: " + err.Error()})
	} else {
		defer simd.stop()
		field = append(field, contestant{name: "simd", word: "simd", process: simd})
	}
	c, err := b.cWorker(ctx, "sweep", self)
	if err != nil {
		b.report.add(measurement{Part: "sweep", Name: "C loop", Note: "skipped: " + err.Error()})
	} else {
		defer c.stop()
		field = append(field, contestant{name: "C", word: "plain", process: c}, contestant{name: "C in tiles", word: "tiled", process: c},
			contestant{name: "triad", word: "triad", process: c})
	}
	rates, err := race(field, b.rounds)
	if err != nil {
		return err
	}
	b.reportSweeps(field, rates)
	return nil
}

// race lets everybody run once per round, after one round that is not counted,
// and gives points per nanosecond (GLUP/s) by name and round.
func race(field []contestant, rounds int) (map[string][]float64, error) {
	rates := map[string][]float64{}
	for round := -1; round < rounds; round++ {
		for _, c := range field {
			n, times := cmp.Or(c.n, sweepN), cmp.Or(c.times, sweepTimes)
			ns, err := c.process.tell(c.word + " " + strconv.Itoa(times))
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				rates[c.name] = append(rates[c.name], float64(n)*float64(n)*float64(n)*float64(times)/ns)
			}
		}
	}
	return rates, nil
}

func (b *bench) reportSweeps(field []contestant, rates map[string][]float64) {
	for _, c := range field {
		if c.name == "triad" {
			continue
		}
		m := over("sweep", c.name, "GLUP/s", rates[c.name])
		if c.name == "go" {
			m = m.atLeast(0.34)
		}
		b.report.add(m)
	}
	if len(rates["C"]) == 0 {
		return
	}
	// The triad reads two arrays and writes one, which is read first: 32 bytes a
	// point. A sweep reads two, and reads and writes one: 32 bytes too, and 24 with
	// stores that pass the caches.
	bound := scaled(rates["triad"], 1)
	b.report.add(over("sweep", "memory", "GB/s", scaled(rates["triad"], 32)),
		over("sweep", "bound by memory", "GLUP/s", bound).because(
			"STREAM's triad moves 32 bytes a point, as a sweep does whose three planes stay in the caches (u, φ, u' with its line read first); stores that pass the caches save 8 of them"))
	for _, c := range field {
		switch c.name {
		case "C", "triad":
			continue
		}
		m := over("sweep", c.name+" / C", "ratio", ratios(rates[c.name], rates["C"]))
		switch c.name {
		case "go":
			m = m.atLeast(0.9).because("plain Go as go build compiles it: one point at a time, since the compiler does not vectorise")
		case "simd":
			m = m.atLeast(0.9).because("Go without assembly, compiled with GOEXPERIMENT=simd")
		}
		b.report.add(m)
	}
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func scaled(a []float64, f float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f * a[i]
	}
	return out
}

// vectorWorker is this program once more, compiled with Go's vector types.
func (b *bench) vectorWorker(ctx context.Context) (*process, error) {
	bin := filepath.Join(b.tmp, "simd")
	if _, err := b.command(ctx, []string{"GOEXPERIMENT=simd"}, "go", "build", "-o", bin, "./bench"); err != nil {
		return nil, err
	}
	p, err := start(ctx, bin, "-worker", strconv.Itoa(sweepN))
	if err != nil {
		return nil, err
	}
	if _, err := p.tell("simd 1"); err != nil {
		p.stop()
		return nil, errors.New("this processor or this Go has no such variant")
	}
	return p, nil
}

// cWorker compiles the loops in C and checks their results against ours: bit by bit
// when the compiler may not fuse multiply and add, closely when it may.
func (b *bench) cWorker(ctx context.Context, part, self string) (*process, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, errors.New("there is no gcc here")
	}
	source := filepath.Join(b.root, "bench", "c", "sweep.c")
	ours, err := b.ownResults(ctx, self)
	if err != nil {
		return nil, err
	}
	var fast string
	for _, contract := range []string{"off", "fast"} {
		fast = filepath.Join(b.tmp, "c-"+contract)
		args := []string{"-O3", "-march=native", "-std=gnu11", "-fopenmp", "-ffp-contract=" + contract, "-o", fast, source}
		if _, err := b.command(ctx, nil, gcc, args...); err != nil {
			return nil, err
		}
		for loop, file := range ours {
			theirs := filepath.Join(b.tmp, "theirs-"+contract)
			if _, err := b.command(ctx, nil, fast, strconv.Itoa(checkN), "check", theirs, loop); err != nil {
				return nil, err
			}
			worst, same, err := largestDifference(file, theirs)
			if err != nil {
				return nil, err
			}
			if contract == "off" && !same || worst > 1e-14 {
				return nil, fmt.Errorf("the C loop %s (-ffp-contract=%s) gives another result: %g apart", loop, contract, worst)
			}
		}
	}
	version, err := b.command(ctx, nil, gcc, "--version")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(version), "\n")
	b.report.add(measurement{Part: part, Name: "C: " + first + ", -O3 -march=native -fopenmp; same bits as ours without -ffp-contract=fast"})
	return start(ctx, fast, strconv.Itoa(sweepN), "time")
}

// ownResults are files with what our kernels give, by the C loop that must agree.
func (b *bench) ownResults(ctx context.Context, self string) (map[string]string, error) {
	out := map[string]string{}
	for loop, flag := range map[string][2]string{
		"plain": {"-worker", "check"}, "timetiled": {"-kernels", "check:tiled"}, "redblack": {"-kernels", "check:redblack"},
	} {
		out[loop] = filepath.Join(b.tmp, "ours-"+loop)
		w, err := start(ctx, self, flag[0], strconv.Itoa(checkN))
		if err != nil {
			return nil, err
		}
		_, err = w.tell(flag[1] + " " + out[loop])
		w.stop()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
