package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// answerLimit bounds the wait for a line of a process.
const answerLimit = time.Minute

// process is a child process that takes commands as lines and answers with lines. It uses no
// processor between commands.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// start starts a program.
func start(ctx context.Context, name string, args ...string) (*process, error) {
	return startBy(func(f func() error) error { return f() }, exec.CommandContext(ctx, name, args...))
}

// startBy starts a command within run, which may change the network namespace of the thread.
func startBy(run func(func() error) error, cmd *exec.Cmd) (*process, error) {
	cmd.Stderr, cmd.WaitDelay = os.Stderr, time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run(cmd.Start); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: in, lines: make(chan string, 4)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	return p, nil
}

// line returns the next line of the process.
func (p *process) line() (string, error) {
	t := time.NewTimer(answerLimit)
	defer t.Stop()
	select {
	case l, ok := <-p.lines:
		if !ok {
			return "", fmt.Errorf("%s has ended", filepath.Base(p.cmd.Path))
		}
		return l, nil
	case <-t.C:
		return "", fmt.Errorf("%s: no answer in %v", filepath.Base(p.cmd.Path), answerLimit)
	}
}

// command sends a line.
func (p *process) command(line string) error {
	_, err := fmt.Fprintln(p.in, line)
	return err
}

// nanoseconds sends a command and returns the number that answers it.
func (p *process) nanoseconds(line string) (float64, error) {
	if err := p.command(line); err != nil {
		return 0, err
	}
	answer, err := p.line()
	if err != nil {
		return 0, fmt.Errorf("%q: %w", line, err)
	}
	return strconv.ParseFloat(answer, 64)
}

// stop closes the standard input, which ends the process; one that hangs is killed.
func (p *process) stop() {
	_ = p.in.Close()
	t := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer t.Stop()
	for range p.lines {
		continue
	}
	_ = p.cmd.Wait()
}
