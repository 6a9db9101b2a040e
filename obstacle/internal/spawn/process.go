// Package spawn starts peers on this host, as processes or as goroutines of this process.
package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
)

// Process is a peer that has its own process.
type Process struct{ command *exec.Cmd }

// drainTime bounds the wait for the standard error of a process after its end.
const drainTime = time.Second

// running is the program of this process, on Linux even if its file was replaced or removed.
const running = "/proc/self/exe"

// Executable returns the path at which the program of this process can be started now. It is the usual one, which lists
// of processes show, unless another file has taken its place.
func Executable() (string, error) {
	path, err := os.Executable()
	now, missing := os.Stat(running)
	if missing != nil { // of a system without it
		return path, err
	}
	if file, gone := os.Stat(path); err == nil && gone == nil && os.SameFile(file, now) {
		return path, nil
	}
	return running, nil
}

// Start runs the program exe with args. It writes line, which holds the run's key, to the standard input, since other
// users can read the command line. The input stays open while this process lives; its end tells the peer that the
// launcher is gone. The process gets its own group, so that an interrupt typed at the terminal reaches the launcher
// only. It inherits files as its descriptors 3, 4, ….
func Start(exe string, args []string, line []byte, errs io.Writer, files ...*os.File) (*Process, error) {
	c := exec.Command(exe, args...)
	c.ExtraFiles = files
	c.Stderr = errs
	c.WaitDelay = drainTime
	ownGroup(c)
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", exe, err)
	}
	// If the process has ended already, Wait tells why.
	if _, err := stdin.Write(line); err != nil && !errors.Is(err, syscall.EPIPE) {
		_ = c.Process.Kill()
		_ = c.Wait()
		return nil, fmt.Errorf("cannot send the run's key to the peer: %w", err)
	}
	return &Process{c}, nil
}

// Wait returns when the process has ended. It may be called by one goroutine.
func (p *Process) Wait() error { return p.command.Wait() }

// Kill ends the process at once, even if it is stopped.
func (p *Process) Kill() { _ = p.command.Process.Kill() }

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) { _ = p.command.Process.Signal(s) }

// Stopped reports whether the process is stopped, as by SIGSTOP. Where the system does not tell, it reports false: a
// stopped process then counts as lost after the peer timeout.
func (p *Process) Stopped() bool {
	state, _ := host.Process(p.command.Process.Pid)
	return state == 'T' || state == 't'
}

// Name returns "pid N".
func (p *Process) Name() string { return fmt.Sprintf("pid %d", p.command.Process.Pid) }

// Routine is a peer in this process.
type Routine struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	err     error
}

// Go runs a peer as a goroutine. run must return soon after its context ends.
func Go(ctx context.Context, run func(ctx context.Context) error) *Routine {
	ctx, cancel := context.WithCancel(ctx)
	r := &Routine{cancel: cancel}
	r.running.Go(func() {
		defer cancel()
		r.err = run(ctx)
	})
	return r
}

// Wait returns when the goroutine has ended.
func (r *Routine) Wait() error {
	r.running.Wait()
	return r.err
}

// Kill asks the goroutine to end.
func (r *Routine) Kill() { r.cancel() }

// Stopped reports that the process runs.
func (r *Routine) Stopped() bool { return false }

// Name returns "in this process".
func (r *Routine) Name() string { return "in this process" }
