package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ticks is what the system has counted of all processors since it began, in hundredths of a
// second: how long they worked, of that for this program and those that it has waited for, and how
// long they would have, had not the host given them to others.
type ticks struct{ worked, own, stolen float64 }

// processors reads it; zero where the system does not tell.
func processors() ticks {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	t := ticksOf(string(text))
	t.own = ownTime().Seconds() * 100
	return t
}

// ticksOf reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and
// steal (proc_stat(5)).
func ticksOf(text string) (t ticks) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return ticks{}
	}
	for i, word := range f[1:9] {
		n, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil:
			return ticks{}
		case i == 7:
			t.stolen = n
		case i != 3 && i != 4:
			t.worked += n
		}
	}
	return t
}

// takenUntil is what the host and other programs have taken since, in per cent of what the
// processors would have worked.
func (t ticks) takenUntil(now ticks) float64 {
	stolen, worked := max(0, now.stolen-t.stolen), now.worked-t.worked
	others := max(0, worked-(now.own-t.own))
	if stolen+others == 0 {
		return 0
	}
	return 100 * (stolen + others) / (stolen + worked)
}

// warm keeps all processors busy for a while: a host gives them back with delay to a guest that
// had nothing to do.
func warm(d time.Duration) {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for begin := time.Now(); time.Since(begin) < d; {
			}
		})
	}
	all.Wait()
}
