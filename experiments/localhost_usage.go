package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// usage is the time of all processors since the system started, in hundredths of a second: worked in
// all, by this program and its children, and stolen by the host of a virtual machine.
type usage struct{ worked, own, stolen float64 }

// readUsage returns zero where the system does not report it.
func readUsage() usage {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}
	}
	u := parseUsage(string(text))
	own := measure.ProcessorTime(measure.ThisProcess) + measure.ProcessorTime(measure.Children)
	u.own = own.Seconds() * 100
	return u
}

// parseUsage parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and
// steal (proc_stat(5)).
func parseUsage(text string) (u usage) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return usage{}
	}
	for i, word := range f[1:9] {
		n, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil:
			return usage{}
		case i == 7:
			u.stolen = n
		case i != 3 && i != 4:
			u.worked += n
		}
	}
	return u
}

// takenUntil returns the share that the host and other programs took until now, in per cent of what
// was worked and stolen.
func (u usage) takenUntil(now usage) float64 {
	stolen, worked := max(0, now.stolen-u.stolen), now.worked-u.worked
	others := max(0, worked-(now.own-u.own))
	if stolen+others == 0 {
		return 0
	}
	return 100 * (stolen + others) / (stolen + worked)
}

// keepBusy keeps all processors busy for a while: a host is slow to give processors back to an idle
// guest.
func keepBusy(d time.Duration) {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for begin := time.Now(); time.Since(begin) < d; {
			}
		})
	}
	all.Wait()
}
