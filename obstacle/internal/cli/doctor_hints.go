package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// tuning holds the settings of a host that limit the speed of runs, as they were read.
type tuning struct {
	udpProblem, udpAdvice string // of ether.Probe; "" if nothing is wrong
	huge                  string // transparent_hugepage/enabled, such as "always [madvise] never"; "" if unknown
	governor              string // of processor 0; "" if unknown
	driver                string // that scales its frequency
	quota                 float64
	threads               int   // that solve uses by default
	rdma                  bool  // there is a port
	lockBytes             int64 // limit of locked memory; negative: none
	lockAllows            bool  // it allows what a peer registers
	registers             int64
	openFiles, mostFiles  int64 // soft and hard limit; negative: none
}

// hint is a setting that costs speed, and the command that changes it. The program never runs it.
type hint struct {
	What    string `json:"what"`
	Found   string `json:"found"`
	Command string `json:"command"`
	Lasts   string `json:"lasts"`
	Gives   string `json:"gives"`
}

// fewFiles is the number of open files below which peers in one process, or with many neighbours, may lack sockets.
const fewFiles = 1024

// hints returns the settings that were read to cost speed.
func (t *tuning) hints() []hint {
	out := []hint{}
	if command, is := strings.CutPrefix(t.udpAdvice, "sysctl -w "); is {
		out = append(out, hint{
			"UDP buffers", t.udpProblem, "sudo sysctl -w " + command,
			"until the host restarts; for good: the same settings, one a line, in /etc/sysctl.d/90-p2pdc.conf",
			"bursts of faces between hosts fit into the queue of a socket instead of being lost and sent again",
		})
	}
	if strings.Contains(t.huge, "[never]") {
		out = append(out, hint{
			"transparent huge pages", "transparent_hugepage/enabled is never",
			"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
			"until the host restarts; for good: transparent_hugepage=madvise on the kernel's command line",
			"large arrays take one page fault and one TLB entry for 2 MiB instead of 4 KiB",
		})
	}
	if t.governor == "conservative" || t.governor == "powersave" && !strings.Contains(t.driver, "pstate") {
		out = append(out, hint{
			"processor frequency", "the governor is " + t.governor,
			"sudo cpupower frequency-set -g performance",
			"until the host restarts; for good: the cpufrequtils or cpupower service of the distribution",
			"processors do not slow down while a peer waits for a face, and begin the next sweep at full speed",
		})
	}
	if t.quota > 0 && t.quota < float64(t.threads) {
		out = append(out, hint{
			"processor quota", fmt.Sprintf("the control group allows %.3g processors, and solve starts %d threads", t.quota,
				t.threads),
			fmt.Sprintf("obstacle solve PROBLEM --peers 1 --threads %d", max(1, int(t.quota))),
			"for this run; for good: a larger quota (docker run --cpus, resources.limits.cpu of Kubernetes, CPUQuota= of systemd)",
			"no thread waits for another one that the kernel has stopped for the rest of a period",
		})
	}
	if t.rdma && t.lockBytes >= 0 && !t.lockAllows {
		out = append(out, hint{
			"locked memory", fmt.Sprintf("the limit is %s, and a peer registers %s", bytesText(t.lockBytes),
				bytesText(t.registers)),
			`echo "* - memlock unlimited" | sudo tee /etc/security/limits.d/90-p2pdc.conf`,
			"for all sessions from the next login on",
			"peers use InfiniBand instead of UDP",
		})
	}
	if t.openFiles >= 0 && t.openFiles < fewFiles {
		h := hint{
			"open files", fmt.Sprintf("a process may open %d", t.openFiles), "ulimit -n 4096", "until this shell ends",
			"peers with many neighbours, and many peers in one process, have sockets for all of them",
		}
		if t.mostFiles >= 0 && t.mostFiles < 4096 {
			h.Command = `echo "* - nofile 4096" | sudo tee /etc/security/limits.d/91-p2pdc.conf`
			h.Lasts = "for all sessions from the next login on"
		}
		out = append(out, h)
	}
	return out
}

// tuningHere reads the settings of this host.
func (d *diagnosis) tuningHere() tuning {
	t := tuning{
		udpProblem: d.UDP.Problem, udpAdvice: d.UDP.Advice, rdma: len(d.RDMA) > 0, registers: d.Verbs.Registers,
		lockBytes: d.Verbs.Lock.Bytes, lockAllows: d.Verbs.Lock.Allows(d.Verbs.Registers), openFiles: -1, mostFiles: -1,
		quota: host.Quota(),
	}
	peers, threads, _ := defaultWorkers(problem.Multigrid, false, smallProblem, d.CPUs)
	t.threads = peers * threads
	if runtime.GOOS == "linux" {
		t.huge = read("/sys/kernel/mm/transparent_hugepage/enabled")
		t.driver = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
		t.governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	}
	for _, l := range host.Limits() {
		if l.Name == "nofile" {
			t.openFiles, t.mostFiles = l.Soft, l.Hard
		}
	}
	return t
}

// read returns a file of one line, "" if there is none.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return strings.TrimSpace(string(b))
}

// hintsText writes the hints as text.
func hintsText(w io.Writer, all []hint, paint painter) {
	if len(all) == 0 {
		fmt.Fprintln(w, "hints: no setting that costs speed was found")
		return
	}
	for _, h := range all {
		fmt.Fprintf(w, "%s %s: %s\n  %s\n  lasts: %s\n  gives: %s\n", paint(yellow, "hint:"), h.What, h.Found, h.Command,
			h.Lasts,
			h.Gives)
	}
}
