package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/runner"
)

const (
	loopOmega   = 1.2 // c/sweep.c has the same
	checkSweeps = 5
	checkWidth  = 3 // threads
)

// loops are the kernels on an n³ block of the reference problem.
type loops struct {
	config  kernel.Config
	u, v    []float64
	sweep   *kernel.Sweep
	byName  map[string]*kernel.Sweep  // of each kernel
	tiles   map[int]*kernel.TimeTiles // by number of threads
	fine    *method.Level             // and the next coarser grid
	coarse  *method.Level
	threads int
	pool    *runner.Pool
}

// workKernels reads a command "LOOP TIMES" or "LOOP:THREADS TIMES" from each line, repeats the loop
// and writes the nanoseconds: processor time of the thread, or by several threads time of the
// clock. "check:LOOP FILE" does 5 repetitions from the start on 3 threads and writes the own points
// to the file. The name of a kernel is a LOOP too: a sweep by this kernel. c/sweep.c takes the same
// commands.
func workKernels(n int, in io.Reader, out io.Writer) error {
	l := &loops{byName: map[string]*kernel.Sweep{}, tiles: map[int]*kernel.TimeTiles{}}
	var err error
	if l.config, l.u, l.v, err = reference(n); err != nil {
		return err
	}
	if l.sweep, err = kernel.New(l.config); err != nil {
		return err
	}
	for _, k := range kernel.All() {
		c := l.config
		c.Kernel = k
		if l.byName[k.Name()], err = kernel.New(c); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // processor time is that of a thread
	defer runtime.UnlockOSThread()
	defer func() { l.setThreads(1) }()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		ns, err := l.execute(lines.Text())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, ns)
	}
	return lines.Err()
}

// execute does a command and returns the nanoseconds.
func (l *loops) execute(line string) (int64, error) {
	word, arg, _ := strings.Cut(line, " ")
	name, suffix, _ := strings.Cut(word, ":")
	if name == "check" {
		l.setThreads(checkWidth)
		if err := l.repeat(suffix, checkSweeps); err != nil {
			return 0, err
		}
		return 0, dump(arg, l.config.Layout, l.u)
	}
	times, err := strconv.Atoi(arg)
	if err != nil {
		return 0, fmt.Errorf("command %q: want LOOP[:THREADS] TIMES", line)
	}
	threads, _ := strconv.Atoi(suffix)
	l.setThreads(max(1, threads))
	clock := func() time.Duration { return measure.ProcessorTime(measure.ThisThread) }
	if l.threads > 1 {
		began := time.Now()
		clock = func() time.Duration { return time.Since(began) }
	}
	begin := clock()
	err = l.repeat(name, times)
	return (clock() - begin).Nanoseconds(), err
}

// setThreads sets the number of threads.
func (l *loops) setThreads(threads int) {
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

// slabs cuts a block along z into pieces and calls do for each, on all threads.
func (l *loops) slabs(b kernel.Box, do func(b kernel.Box)) {
	const pieces = 16
	n := b.Hi[2]
	l.executor().For(pieces, func(i int) {
		p := b
		p.Lo[2], p.Hi[2] = n*i/pieces, n*(i+1)/pieces
		do(p)
	})
}

// repeat runs a loop so many times and leaves the newest values in l.u.
func (l *loops) repeat(name string, times int) error {
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
		s := l.byName[name]
		if s == nil {
			return fmt.Errorf("no loop %q", name)
		}
		for range times {
			s.Relax(l.v, l.u, l.u, all)
			l.u, l.v = l.v, l.u
		}
	}
	return nil
}

// transfers runs the loops of a multigrid cycle on its finest grid beside sweeps: "descend" is a
// sweep, its residual and the restriction in one pass, "restrict" the coarse problem from what that
// left, "prolong" a correction that keeps a copy, "ascend" the correction and the sweep after it in
// one pass.
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

// makeLevels makes the two finest grids of multigrid and the problem of a correction.
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
	c.Part, c.Operator = kernel.Whole(layout), op
	if l.coarse, err = method.NewLevel(c, true); err != nil {
		return err
	}
	if err = l.fine.Connect(l.coarse); err != nil {
		return err
	}
	l.fine.SmoothRestrict(1, loopOmega, l.executor())
	return nil
}

// variable runs a loop with coefficients of each point, which the first call makes.
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
	return l.repeat(map[string]string{"variable": "relax", "variabletiled": "tiled"}[name], times)
}

// reference returns the reference problem: unit cube, f = 0, φ = 0.5 − 4|x−c|².
func reference(n int) (c kernel.Config, u, v []float64, err error) {
	l, err := kernel.NewLayout(3, [3]int{n, n, n})
	if err != nil {
		return c, nil, nil, err
	}
	h := 1 / float64(n+1)
	c = kernel.Config{
		Layout: l, Step: h * h / 6, Operator: kernel.Operator{Diag: 6 / (h * h), Off: 1 / (h * h)},
		Lower: kernel.Field{Array: make([]float64, l.Points())}, Upper: kernel.NoUpper(),
	}
	u, v = make([]float64, l.Len()), make([]float64, l.Len())
	for z := range n {
		for y := range n {
			for x := range n {
				a, b, d := float64(x+1)*h-0.5, float64(y+1)*h-0.5, float64(z+1)*h-0.5
				p := 0.5 - float64(4*(float64(float64(a*a)+float64(b*b))+float64(d*d)))
				c.Lower.Array[l.Dense(x, y, z)] = p
				u[l.Index(x, y, z)] = max(p, 0)
			}
		}
	}
	return c, u, v, nil
}

// dump writes the own points of a block to a file.
func dump(file string, l kernel.Layout, u []float64) error {
	face := make([]byte, 8*l.Points())
	l.Pack(face, u, l.Interior())
	return os.WriteFile(file, face, 0o666)
}

// largestDifference compares two dumps; same reports whether they are equal bit by bit.
func largestDifference(a, b string) (worst float64, same bool, err error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return 0, false, err
	}
	y, err := os.ReadFile(b)
	if err != nil {
		return 0, false, err
	}
	if len(x) != len(y) || len(x) == 0 {
		return 0, false, fmt.Errorf("%d bytes against %d", len(x), len(y))
	}
	same = true
	for i := 0; i < len(x); i += 8 {
		p, q := binary.LittleEndian.Uint64(x[i:]), binary.LittleEndian.Uint64(y[i:])
		if p != q {
			same = false
			worst = max(worst, math.Abs(math.Float64frombits(p)-math.Float64frombits(q)))
		}
	}
	return worst, same, nil
}
