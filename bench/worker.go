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

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// work is the counterpart of c/sweep.c: a process that relaxes the reference case
// when told "KERNEL TIMES" on a line, and answers with the nanoseconds that a core
// worked on it. "check FILE" relaxes 5 times from the start and writes the own
// points.
func work(n int, in io.Reader, out io.Writer) error {
	c, u, v, err := reference(n)
	if err != nil {
		return err
	}
	sweeps := map[string]*kernel.Sweep{}
	for _, k := range kernel.All() {
		c.Kernel = k
		if sweeps[k.Name()], err = kernel.New(c); err != nil {
			return err
		}
	}
	relax := func(s *kernel.Sweep, times int) {
		for range times {
			s.Relax(v, u, u, c.Layout.Interior())
			u, v = v, u
		}
	}
	runtime.LockOSThread() // the clock is a thread's
	defer runtime.UnlockOSThread()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, arg, _ := strings.Cut(lines.Text(), " ")
		if name == "check" {
			relax(sweeps[kernel.Best().Name()], 5)
			if err := dump(arg, c.Layout, u); err != nil {
				return err
			}
			fmt.Fprintln(out, 0)
			continue
		}
		times, err := strconv.Atoi(arg)
		if err != nil || sweeps[name] == nil {
			return fmt.Errorf("do not understand %q", lines.Text())
		}
		begin := coreTime()
		relax(sweeps[name], times)
		fmt.Fprintln(out, (coreTime() - begin).Nanoseconds())
	}
	return lines.Err()
}

// reference is the reference case: unit cube, f = 0, φ = 0.5 − 4|x−c|².
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

func dump(file string, l kernel.Layout, u []float64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	face := make([]byte, 8*l.Points())
	l.Pack(face, u, l.Interior())
	if _, err := f.Write(face); err != nil {
		return err
	}
	return f.Close()
}

// largestDifference compares two dumps; same tells whether they are equal bit by
// bit.
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
