package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// loop is a line of the roofline table.
type loop struct {
	name  string
	word  string  // in the commands of the worker
	n     int     // points an axis of the block
	times int     // of one timing
	bytes float64 // moved per point at least, to and from memory; 0: the block stays in the caches
	c     string  // loop of c/sweep.c that does the same; "": none
	note  string
	least [2]float64 // target in GLUP/s on one thread and on two; 0: none
}

const (
	cacheN     = 32  // a block that fits the second-level cache
	variableN  = 160 // ten arrays of it exceed any cache
	transferN  = 255 // coarsens to 127
	cacheTimes = 2000
)

// kernelLoops returns all loops. An array read once counts as 8 bytes a point, one written as 16,
// its line being read first, or as 8 where stores bypass the caches.
func kernelLoops() []loop {
	return []loop{
		{name: "sweep", word: "relax", n: sweepN, times: sweepTimes, bytes: 24, c: "plain",
			least: [2]float64{0.40, 0.78}, note: "u and φ read, u' written past the caches"},
		{name: "time-tiled sweep", word: "tiled", n: sweepN, times: 16, bytes: 24, c: "timetiled",
			least: [2]float64{0.8, 1.6},
			note:  "bytes of a plain sweep: the ratio shows how far beyond its bound the loop is"},
		{name: "red-black sweep", word: "redblack", n: sweepN, times: 8, bytes: 24, c: "redblack",
			note: "u read and written in place, φ read, both colours in one pass; sweeps that share a pass move less"},
		{name: "sweep, variable coefficients", word: "variable", n: variableN, times: 8, bytes: 88,
			note: "u, φ and seven coefficients read, u' written, its line read first"},
		{name: "time-tiled sweep, variable coefficients", word: "variabletiled", n: variableN, times: 12, bytes: 88},
		{name: "residual", word: "defect", n: transferN, times: 8, bytes: 32,
			note: "u and φ read, r written, its line read first"},
		{name: "sweep, residual and sums of a restriction", word: "descend", n: transferN, times: 4, bytes: 28,
			note: "one pass: u read and written, φ read, sums of a quarter of the points written, " +
				"their lines read first"},
		{name: "coarse problem from the sums", word: "restrict", n: transferN, times: 4, bytes: 12,
			note: "u and φ in a quarter of the rows and the sums read, three arrays of 1/8 of the points written"},
		{name: "prolongation", word: "prolong", n: transferN, times: 4, bytes: 33,
			note: "u read and written, a copy of it written past the caches, φ and an eighth of the points read"},
		{name: "prolongation and sweep", word: "ascend", n: transferN, times: 4, bytes: 33,
			note: "one pass, the same bytes"},
		{name: "sweep, from the cache", word: "relax", n: cacheN, times: cacheTimes},
		{name: "red-black sweep, from the cache", word: "redblack", n: cacheN, times: cacheTimes},
		{name: "sweep, variable coefficients, from the cache", word: "variable", n: cacheN, times: cacheTimes},
	}
}

// kernels compares every loop, and its like in C, on one thread and on two, with STREAM's triad.
func kernels(ctx context.Context, r *measure.Run) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := cWorker(ctx, r, self)
	if err != nil {
		return fmt.Errorf("the loops in C: %w", err)
	}
	defer c.stop()
	w := workers{ctx: ctx, program: self, running: map[string]*process{}}
	defer w.stop()
	most := min(2, runtime.NumCPU())
	var variants []variant
	for _, l := range kernelLoops() {
		p, err := w.worker(l)
		if err != nil {
			return err
		}
		for threads := 1; threads <= most && (threads == 1 || l.bytes > 0); threads++ {
			variants = append(variants, variant{onThreads(l.name, threads), command(l.word, threads), p, l.n, l.times})
			if l.c != "" {
				variants = append(variants, variant{onThreads(l.c, threads), command(l.c, threads), c, l.n, l.times})
			}
		}
	}
	for threads := 1; threads <= most; threads++ {
		triad := variant{name: onThreads("triad", threads), loop: command("triad", threads), process: c}
		variants = append(variants, triad)
	}
	rates, err := compareLoops(variants, r)
	if err != nil {
		return err
	}
	for threads := 1; threads <= most; threads++ {
		addLoops(r, threads, rates)
	}
	return nil
}

func onThreads(name string, threads int) string { return fmt.Sprintf("%s, %d×", name, threads) }

// command is the command for a loop without its repetitions.
func command(word string, threads int) string {
	if threads == 1 {
		return word
	}
	return word + ":" + strconv.Itoa(threads)
}

// workers are processes of this program, one for each size of block and form of coefficients.
type workers struct {
	ctx     context.Context
	program string
	running map[string]*process
}

func (w *workers) worker(l loop) (p *process, err error) {
	key := fmt.Sprint(strings.HasPrefix(l.word, "variable"), l.n)
	if w.running[key] == nil {
		if p, err = start(w.ctx, w.program, "-kernels", strconv.Itoa(l.n)); err != nil {
			return nil, err
		}
		w.running[key] = p
	}
	return w.running[key], nil
}

func (w *workers) stop() {
	for _, p := range w.running {
		p.stop()
	}
}

// addLoops adds the rates on so many threads beside those that memory bandwidth allows.
func addLoops(r *measure.Run, threads int, rates map[string][]float64) {
	// The triad reads two arrays and writes one, whose line is read first: 32 bytes a point.
	bandwidth := measure.Scaled(rates[onThreads("triad", threads)], 32)
	r.Add(measure.Over(onThreads("memory bandwidth, STREAM's triad", threads), "GB/s", bandwidth))
	for _, l := range kernelLoops() {
		name := onThreads(l.name, threads)
		if len(rates[name]) == 0 {
			continue
		}
		m := measure.Over(name, "GLUP/s", rates[name])
		if l.bytes > 0 {
			m = m.Against(fmt.Sprintf("bound of %g bytes a point", l.bytes), measure.Scaled(bandwidth, 1/l.bytes))
		}
		if v := l.least[threads-1]; v > 0 {
			m = m.AtLeast(v)
		}
		if l.c != "" {
			m = m.Against("C", rates[onThreads(l.c, threads)]).RatioAtLeast(1)
		}
		if threads == 1 {
			m.Note = l.note
		}
		r.Add(m)
	}
}
