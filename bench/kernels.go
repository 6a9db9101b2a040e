package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// kernelLine is a line of the roofline table.
type kernelLine struct {
	name  string
	word  string
	n     int     // points an axis of the block
	times int     // of one timing
	bytes float64 // that a point moves at least, to and from memory; 0: it stays in the caches
	ours  bool
	note  string
	least [2]float64 // target in GLUP/s by one thread and by two; 0: none
}

const (
	cacheN     = 32  // a block that the second-level cache holds
	variableN  = 160 // ten arrays of it are beyond any cache
	transferN  = 255 // coarsens to 127
	cacheTimes = 2000
)

// kernelLines are all loops. Bytes count an array read once as 8, written as 16 where
// the line is read first, by 8 where stores pass the caches.
func kernelLines() []kernelLine {
	return []kernelLine{
		{name: "sweep", word: "relax", n: sweepN, times: sweepTimes, bytes: 24, ours: true, least: [2]float64{0.40, 0.78}, note: "u and φ read, u' written past the caches"},
		{name: "sweep, C", word: "plain", n: sweepN, times: sweepTimes, bytes: 32, note: "u and φ read, u' written, its line read first"},
		{name: "time-tiled sweep", word: "tiled", n: sweepN, times: 16, bytes: 24, ours: true, least: [2]float64{0.8, 1.6}, note: "bytes of a plain sweep, so that the share says how far beyond its bound"},
		{name: "time-tiled sweep, C", word: "timetiled", n: sweepN, times: 16, bytes: 24},
		{name: "red-black sweep", word: "redblack", n: sweepN, times: 8, bytes: 24, ours: true, note: "u read and written in place, φ read, both colours in one pass; several sweeps in a pass take less"},
		{name: "red-black sweep, C", word: "redblack", n: sweepN, times: 8, bytes: 24},
		{name: "sweep, variable coefficients", word: "variable", n: variableN, times: 8, bytes: 88, ours: true, note: "u, φ and seven coefficients read, u' written, its line read first"},
		{name: "time-tiled sweep, variable coefficients", word: "variabletiled", n: variableN, times: 12, bytes: 88, ours: true},
		{name: "defect", word: "defect", n: transferN, times: 8, bytes: 32, ours: true, note: "u and φ read, r written, its line read first"},
		{name: "sweep, defect and sums of a restriction", word: "descend", n: transferN, times: 4, bytes: 28, ours: true, note: "one pass: u read and written, φ read, sums of a quarter of the points written, their lines read first"},
		{name: "coarse problem from the sums", word: "restrict", n: transferN, times: 4, bytes: 12, ours: true, note: "u and φ in a quarter of the rows and the sums read, three arrays of an eighth of the points written; walls and pins"},
		{name: "prolongation", word: "prolong", n: transferN, times: 4, bytes: 33, ours: true, note: "u read and written, written again past the caches as what is kept, φ and an eighth of the points read"},
		{name: "prolongation and sweep", word: "ascend", n: transferN, times: 4, bytes: 33, ours: true, note: "one pass, the same bytes"},
		{name: "sweep, from the cache", word: "relax", n: cacheN, times: cacheTimes, ours: true},
		{name: "red-black sweep, from the cache", word: "redblack", n: cacheN, times: cacheTimes, ours: true},
		{name: "sweep, variable coefficients, from the cache", word: "variable", n: cacheN, times: cacheTimes, ours: true},
	}
}

// kernels races every loop, of ours and in C, by one thread and by two, with the triad
// among them.
func kernels(ctx context.Context, b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := b.cWorker(ctx, "kernels", self)
	if err != nil {
		return fmt.Errorf("the loops in C: %w", err)
	}
	defer c.stop()
	crew := crew{ctx: ctx, self: self, at: map[string]*process{}}
	defer crew.stop()
	most := min(2, runtime.NumCPU())
	var field []contestant
	for _, line := range kernelLines() {
		p := c
		if line.ours {
			if p, err = crew.worker(line); err != nil {
				return err
			}
		}
		for threads := 1; threads <= most && (threads == 1 || line.bytes > 0); threads++ {
			field = append(field, contestant{kernelName(line.name, threads), byThreads(line.word, threads), p, line.n, line.times})
		}
	}
	for threads := 1; threads <= most; threads++ {
		field = append(field, contestant{kernelName("triad", threads), byThreads("triad", threads), c, sweepN, sweepTimes})
	}
	rates, err := race(field, b.rounds)
	if err != nil {
		return err
	}
	for threads := 1; threads <= most; threads++ {
		b.reportKernels(threads, rates)
	}
	return nil
}

func kernelName(name string, threads int) string { return fmt.Sprintf("%s, %d×", name, threads) }

func byThreads(word string, threads int) string {
	if threads == 1 {
		return word
	}
	return word + ":" + strconv.Itoa(threads)
}

// crew is processes of this program: one a block and form of coefficients.
type crew struct {
	ctx  context.Context
	self string
	at   map[string]*process
}

func (c *crew) worker(l kernelLine) (*process, error) {
	key := strconv.Itoa(l.n)
	if l.word == "variable" || l.word == "variabletiled" {
		key = "variable " + key
	}
	if c.at[key] == nil {
		p, err := start(c.ctx, c.self, "-kernels", strconv.Itoa(l.n))
		if err != nil {
			return nil, err
		}
		c.at[key] = p
	}
	return c.at[key], nil
}

func (c *crew) stop() {
	for _, p := range c.at {
		p.stop()
	}
}

// reportKernels gives rates, and shares of what the triad's bandwidth allows.
func (b *bench) reportKernels(threads int, rates map[string][]float64) {
	// The triad reads two arrays and writes one, which is read first: 32 bytes a point.
	bandwidth := scaled(rates[kernelName("triad", threads)], 32)
	b.report.add(over("kernels", kernelName("memory, STREAM's triad", threads), "GB/s", bandwidth))
	rate := func(name string) []float64 { return rates[kernelName(name, threads)] }
	for _, l := range kernelLines() {
		name := kernelName(l.name, threads)
		if len(rates[name]) == 0 {
			continue
		}
		m := over("kernels", name, "GLUP/s", rates[name])
		if v := l.least[threads-1]; v > 0 {
			m = m.atLeast(v)
		}
		b.report.add(m)
		if l.bytes == 0 {
			continue
		}
		share := over("kernels", fmt.Sprintf("%s: %g bytes a point, of the bound", name, l.bytes), "ratio", ratios(scaled(rates[name], l.bytes), bandwidth))
		share.Note = l.note
		b.report.add(share)
	}
	b.report.add(
		over("kernels", kernelName("sweep / C", threads), "ratio", ratios(rate("sweep"), rate("sweep, C"))).atLeast(1),
		over("kernels", kernelName("time-tiled sweep / C", threads), "ratio", ratios(rate("time-tiled sweep"), rate("time-tiled sweep, C"))).atLeast(1),
		over("kernels", kernelName("red-black sweep / C", threads), "ratio", ratios(rate("red-black sweep"), rate("red-black sweep, C"))).atLeast(1))
}
