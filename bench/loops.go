package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/runner"
)

const (
	loopOmega   = 1.2 // c/sweep.c has the same
	checkRounds = 5
)

// loops are the kernels on an n³ block of the reference case.
type loops struct {
	config  kernel.Config
	u, v    []float64
	sweep   *kernel.Sweep
	tiles   map[int]*kernel.TimeTiles // by threads
	fine    *method.Level             // and the next coarser grid
	coarse  *method.Level
	threads int
	pool    *runner.Pool
}

// workKernels does "LOOP TIMES" or "LOOP:THREADS TIMES" for each line and answers with
// the nanoseconds: those that a core worked on it, or by several threads those of the
// clock on the wall. "check:LOOP FILE" does it 5 times from the start, by 3 threads, and
// writes the own points.
func workKernels(n int, in io.Reader, out io.Writer) error {
	l := &loops{tiles: map[int]*kernel.TimeTiles{}}
	var err error
	if l.config, l.u, l.v, err = reference(n); err != nil {
		return err
	}
	if l.sweep, err = kernel.New(l.config); err != nil {
		return err
	}
	runtime.LockOSThread() // the clock is a thread's
	defer runtime.UnlockOSThread()
	defer func() { l.by(1) }()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		word, arg, _ := strings.Cut(lines.Text(), " ")
		name, by, _ := strings.Cut(word, ":")
		if name == "check" {
			l.by(3)
			if err := l.do(by, checkRounds); err != nil {
				return err
			}
			if err := dump(arg, l.config.Layout, l.u); err != nil {
				return err
			}
			fmt.Fprintln(out, 0)
			continue
		}
		times, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("do not understand %q", lines.Text())
		}
		threads, _ := strconv.Atoi(by)
		l.by(max(1, threads))
		clock := coreTime
		if l.threads > 1 {
			began := time.Now()
			clock = func() time.Duration { return time.Since(began) }
		}
		begin := clock()
		if err := l.do(name, times); err != nil {
			return err
		}
		fmt.Fprintln(out, (clock() - begin).Nanoseconds())
	}
	return lines.Err()
}

// by sets the number of threads.
func (l *loops) by(threads int) {
	if l.threads == threads {
		return
	}
	if l.pool != nil {
		l.pool.Close()
		l.pool = nil
	}
	if l.threads = threads; threads > 1 {
		l.pool = runner.NewPool(threads)
	}
}

func (l *loops) executor() kernel.Executor {
	if l.pool != nil {
		return l.pool
	}
	return kernel.Sequential{}
}

// slabs calls do for pieces of n planes of a block by all threads.
func (l *loops) slabs(b kernel.Box, do func(b kernel.Box)) {
	const pieces = 16
	n := b.Hi[2]
	l.executor().For(pieces, func(i int) {
		p := b
		p.Lo[2], p.Hi[2] = n*i/pieces, n*(i+1)/pieces
		do(p)
	})
}

// do runs a loop so many times; the newest values are in l.u then.
func (l *loops) do(name string, times int) error {
	all := l.config.Layout.Interior()
	switch name {
	case "relax":
		for range times {
			l.slabs(all, func(b kernel.Box) { l.sweep.Relax(l.v, l.u, l.u, b) })
			l.u, l.v = l.v, l.u
		}
	case "tiled":
		if l.tiles[l.threads] == nil {
			l.tiles[l.threads] = kernel.NewTimeTiles(l.sweep, kernel.Tiling{Pieces: l.threads})
		}
		l.tiles[l.threads].RelaxMany(l.u, l.v, times, l.executor())
		if times%2 == 1 {
			l.u, l.v = l.v, l.u
		}
	case "redblack":
		l.sweep.RedBlack(l.u, loopOmega, times, l.executor())
	case "defect":
		for range times {
			l.slabs(all, func(b kernel.Box) { l.sweep.Defect(l.v, l.u, b) })
		}
	case "descend", "restrict", "prolong", "ascend":
		return l.transfers(name, times)
	case "variable", "variabletiled":
		return l.variable(name, times)
	default:
		return fmt.Errorf("no loop %q", name)
	}
	return nil
}

// transfers are what a cycle of multigrid does on its finest grid beside sweeps, by the
// solver's own passes: a sweep, its residual and the restriction in one; the coarse
// problem, walls and pins, from what that has left; a correction that keeps what it
// corrects; and the same with the sweep after it in one pass.
func (l *loops) transfers(name string, times int) error {
	if l.fine == nil {
		if err := l.makeLevels(); err != nil {
			return err
		}
	}
	exec := l.executor()
	for range times {
		switch name {
		case "descend":
			l.fine.SmoothRestrict(1, loopOmega, exec)
		case "restrict":
			l.slabs(l.coarse.Part.Layout.Interior(), func(b kernel.Box) { l.fine.Restrict(l.coarse, b) })
			l.coarse.UpdateTruncated(false)
		case "prolong":
			l.slabs(l.config.Layout.Interior(), func(b kernel.Box) { l.fine.Prolong(l.coarse, l.v, b) })
		default:
			l.fine.DeferProlong(l.coarse, l.v)
			l.fine.Smooth(1, loopOmega, exec, nil)
		}
	}
	return nil
}

// makeLevels makes the two finest grids of multigrid, and the problem of a correction.
func (l *loops) makeLevels() error {
	n := (l.config.Layout.N[0] - 1) / 2
	layout, err := kernel.NewLayout(3, [3]int{n, n, n})
	if err != nil {
		return err
	}
	op := kernel.Operator{Diag: l.config.Operator.Diag, Off: l.config.Operator.Off}
	c := method.LevelConfig{Source: l.config.Source, Lower: l.config.Lower, Upper: l.config.Upper}
	c.Part, c.Operator = kernel.Whole(l.config.Layout), op
	if l.fine, err = method.NewLevel(c, false); err != nil {
		return err
	}
	l.fine.Values = l.u
	op.Diag, op.Off = op.Diag/4, op.Off/4
	c.Part, c.Operator, c.Truncate = kernel.Whole(layout), op, true
	if l.coarse, err = method.NewLevel(c, true); err != nil {
		return err
	}
	if err = l.fine.Connect(l.coarse, nil); err != nil {
		return err
	}
	l.fine.SmoothRestrict(1, loopOmega, l.executor())
	return nil
}

// variable gives every point coefficients of its own, once.
func (l *loops) variable(name string, times int) error {
	if op := &l.config.Operator; op.Form != kernel.Variable {
		diag, off := op.Diag, op.Off
		op.Form = kernel.Variable
		for d := range op.Arrays {
			op.Arrays[d] = make([]float64, l.config.Layout.Points())
			for i := range op.Arrays[d] {
				op.Arrays[d][i] = off
				if d == kernel.Center {
					op.Arrays[d][i] = diag
				}
			}
		}
		var err error
		if l.sweep, err = kernel.New(l.config); err != nil {
			return err
		}
		clear(l.tiles)
	}
	return l.do(map[string]string{"variable": "relax", "variabletiled": "tiled"}[name], times)
}
