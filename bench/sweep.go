package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/measure"
)

const (
	sweepN     = 256
	sweepTimes = 10 // sweeps of one timing
	checkN     = 40
)

// variant is one implementation of a loop: a process and the loop's name in its commands.
type variant struct {
	name, loop string
	process    *process
	n, times   int // points an axis and repetitions; 0: sweepN, sweepTimes
}

// sweeps times a sweep on one core: every kernel of this project, that of Go's vector types, and C.
func sweeps(ctx context.Context, r *measure.Run) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker, err := start(ctx, self, "-kernels", strconv.Itoa(sweepN))
	if err != nil {
		return err
	}
	defer worker.stop()
	var ours, all []variant
	for _, k := range kernel.All() {
		if k.Name() != "reference" {
			ours = append(ours, variant{name: k.Name(), loop: k.Name(), process: worker})
		}
	}
	if simd, err := vectorWorker(ctx, r); err != nil {
		r.Skip("Go with vector types", err)
	} else {
		defer simd.stop()
		ours = append(ours, variant{name: "simd", loop: "simd", process: simd})
	}
	c, err := cWorker(ctx, r, self)
	if err != nil {
		r.Skip("C", err)
		all = ours
	} else {
		defer c.stop()
		all = append(ours[:len(ours):len(ours)], variant{name: "C", loop: "plain", process: c},
			variant{name: "C in tiles", loop: "tiled", process: c}, variant{name: "triad", loop: "triad", process: c})
	}
	rates, err := compareLoops(all, r)
	if err != nil {
		return err
	}
	for _, v := range ours {
		m := measure.Over(v.name, "GLUP/s", rates[v.name]).Against("memory bound", rates["triad"]).
			Against("C in tiles", rates["C in tiles"]).Against("C", rates["C"])
		switch v.name {
		case "go":
			m = m.AtLeast(0.34).RatioAtLeast(0.9).Because(
				"Plain Go as go build compiles it: one point at a time, because the compiler does not vectorise.")
		case "simd":
			m = m.RatioAtLeast(0.9).Because("Go without assembly, compiled with GOEXPERIMENT=simd.")
		}
		r.Add(m)
	}
	if c != nil {
		// The triad reads two arrays and writes one, whose line is read first: 32 bytes a point.
		r.Add(measure.Over("memory bandwidth, STREAM's triad", "GB/s", measure.Scaled(rates["triad"], 32)).Because(
			"The memory bound is that of 32 bytes a point, as the triad moves: u and φ read, u' written, its line read " +
				"first. Stores that bypass the caches save 8 of them."))
	}
	return nil
}

// compareLoops runs every variant once per round, after one round that is not counted, and returns
// points per nanosecond (GLUP/s) by name and round.
func compareLoops(variants []variant, r *measure.Run) (map[string][]float64, error) {
	rates := map[string][]float64{}
	for round := range r.Repeat(r.Rounds + 1) {
		for _, v := range variants {
			n, times := float64(cmp.Or(v.n, sweepN)), cmp.Or(v.times, sweepTimes)
			ns, err := v.process.nanoseconds(v.loop + " " + strconv.Itoa(times))
			if err != nil {
				return nil, err
			}
			if round > 0 {
				rates[v.name] = append(rates[v.name], n*n*n*float64(times)/ns)
			}
		}
	}
	return rates, nil
}

// vectorWorker is this program compiled again with Go's vector types.
func vectorWorker(ctx context.Context, r *measure.Run) (*process, error) {
	program := filepath.Join(r.Temp, "simd")
	if _, err := r.Command(ctx, []string{"GOEXPERIMENT=simd"}, "go", "build", "-o", program, "./bench"); err != nil {
		return nil, err
	}
	p, err := start(ctx, program, "-kernels", strconv.Itoa(sweepN))
	if err != nil {
		return nil, err
	}
	if _, err := p.nanoseconds("simd 1"); err != nil {
		p.stop()
		return nil, errors.New("this processor or this version of Go has no such kernel")
	}
	return p, nil
}

// cWorker compiles the loops in C and checks their results against ours: bit by bit where the
// compiler may not fuse multiplication and addition, to 1e-14 where it may.
func cWorker(ctx context.Context, r *measure.Run, self string) (*process, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, fmt.Errorf("%w: gcc", measure.ErrUnavailable)
	}
	source := filepath.Join(r.Root, "bench", "c", "sweep.c")
	ours, err := ownResults(ctx, r, self)
	if err != nil {
		return nil, err
	}
	var program string
	for _, contract := range []string{"off", "fast"} {
		program = filepath.Join(r.Temp, "c-"+contract)
		args := []string{"-O3", "-march=native", "-std=gnu11", "-fopenmp", "-ffp-contract=" + contract}
		args = append(args, "-o", program, source)
		if _, err := r.Command(ctx, nil, gcc, args...); err != nil {
			return nil, err
		}
		for loop, file := range ours {
			theirs := filepath.Join(r.Temp, "theirs-"+contract)
			if _, err := r.Command(ctx, nil, program, strconv.Itoa(checkN), "check", theirs, loop); err != nil {
				return nil, err
			}
			worst, same, err := largestDifference(file, theirs)
			if err != nil {
				return nil, err
			}
			if contract == "off" && !same || worst > 1e-14 {
				return nil, fmt.Errorf("the C loop %s (-ffp-contract=%s) differs from ours by %g",
					loop, contract, worst)
			}
		}
	}
	version, err := r.Command(ctx, nil, gcc, "--version")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(version), "\n")
	r.Add(measure.Result{
		Name: "C: " + first,
		Note: "-O3 -march=native -fopenmp; without -ffp-contract=fast its results are ours bit by bit.",
	})
	return start(ctx, program, strconv.Itoa(sweepN), "time")
}

// ownResults writes the results of our loops and returns their files by the name of the C loop that
// must agree.
func ownResults(ctx context.Context, r *measure.Run, self string) (map[string]string, error) {
	out := map[string]string{}
	for loop, ours := range map[string]string{"plain": "relax", "timetiled": "tiled", "redblack": "redblack"} {
		out[loop] = filepath.Join(r.Temp, "ours-"+loop)
		w, err := start(ctx, self, "-kernels", strconv.Itoa(checkN))
		if err != nil {
			return nil, err
		}
		_, err = w.nanoseconds("check:" + ours + " " + out[loop])
		w.stop()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
