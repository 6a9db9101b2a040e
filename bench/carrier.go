package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/bench/internal/duel"
)

// place is where a comparison runs: the addresses of the two ends, and how to start
// a process beside each.
type place struct {
	name  string
	hosts [2]string
	start [2]func(func() error) error
	close func()
}

// loopback is one host.
func loopback() place {
	here := func(f func() error) error { return f() }
	return place{
		name: "loopback", hosts: [2]string{"127.0.0.1", "127.0.0.1"},
		start: [2]func(func() error) error{here, here}, close: func() {},
	}
}

// carrier is a transport with both of its ends, in a process each, that wait for
// orders and use no processor meanwhile.
type carrier struct {
	name  string
	order func(line string) (leader, other duel.Answer, err error)
	close func()
}

// orderLimit bounds the time of one order.
const orderLimit = time.Minute

// speaker is a process that takes lines and answers with lines.
type speaker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func (b *bench) speaker(ctx context.Context, p place, side int, name string, args ...string) (*speaker, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = b.root, os.Stderr, time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.start[side](cmd.Start); err != nil {
		return nil, err
	}
	r := &speaker{cmd: cmd, in: in, lines: make(chan string, 4)}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r, nil
}

// line is the next one that the process says.
func (p *speaker) line() (string, error) {
	t := time.NewTimer(orderLimit)
	defer t.Stop()
	select {
	case l, ok := <-p.lines:
		if !ok {
			return "", errors.New("its process has ended")
		}
		return l, nil
	case <-t.C:
		return "", fmt.Errorf("no answer in %v", orderLimit)
	}
}

func (p *speaker) answer() (a duel.Answer, err error) {
	l, err := p.line()
	if err == nil {
		err = json.Unmarshal([]byte(l), &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// end closes the standard input, which ends the process; one that hangs is killed.
func (p *speaker) end() {
	_ = p.in.Close()
	t := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer t.Stop()
	for range p.lines {
		continue
	}
	_ = p.cmd.Wait()
}

// pairOf starts a transport whose ends are two processes; args are those that both
// get.
func (b *bench) pairOf(ctx context.Context, p place, name, program string, args ...string) (*carrier, error) {
	called, err := b.speaker(ctx, p, 0, program, append(args, "-host", p.hosts[0])...)
	if err != nil {
		return nil, err
	}
	address, err := called.line()
	if err != nil {
		called.end()
		return nil, err
	}
	caller, err := b.speaker(ctx, p, 1, program, append(args, "-host", p.hosts[1], "-call", address)...)
	if err != nil {
		called.end()
		return nil, err
	}
	order := func(line string) (x, y duel.Answer, err error) {
		for _, e := range []*speaker{called, caller} {
			if _, err := io.WriteString(e.in, line+"\n"); err != nil {
				return x, y, err
			}
		}
		if x, err = caller.answer(); err != nil {
			return x, y, err
		}
		y, err = called.answer()
		return x, y, err
	}
	return &carrier{name: name, order: order, close: func() { caller.end(); called.end() }}, nil
}

func (b *bench) tcp(ctx context.Context, p place) (*carrier, error) {
	return b.own(ctx, p, "TCP in Go, reno", kindTCP)
}

func (b *bench) floor(ctx context.Context, p place) (*carrier, error) {
	return b.own(ctx, p, "plain datagrams", kindFloor)
}

func (b *bench) ours(ctx context.Context, p place) (*carrier, error) {
	return b.own(ctx, p, "p2psap", kindOurs)
}

func (b *bench) oursSealed(ctx context.Context, p place) (*carrier, error) {
	return b.own(ctx, p, "p2psap, protected", kindSealed)
}

func (b *bench) oursAsync(ctx context.Context, p place) (*carrier, error) {
	return b.own(ctx, p, "p2psap, asynchronous", kindAsync)
}

func (b *bench) own(ctx context.Context, p place, name, kind string) (*carrier, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.pairOf(ctx, p, name, self, "-end", kind)
}

// quic is a module of its own: it is built when it is wanted.
func (b *bench) quic(ctx context.Context, p place) (*carrier, error) {
	program := filepath.Join(b.tmp, "quic")
	if _, err := os.Stat(program); err != nil {
		if _, err := b.command(ctx, nil, "go", "-C", filepath.Join("bench", "peers"), "build", "-o", program, "./quic"); err != nil {
			return nil, err
		}
	}
	return b.pairOf(ctx, p, "quic-go, a stream", program)
}

// mpi is Open MPI over TCP. Its launcher starts both ranks on this host.
func (b *bench) mpi(ctx context.Context, p place) (*carrier, error) {
	if p.hosts[0] != p.hosts[1] {
		return nil, errors.New("skipped: mpirun reaches another host only through ssh, and the two hosts of this wire have none")
	}
	for _, name := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("skipped: there is no %s here (Debian: openmpi-bin, libopenmpi-dev)", name)
		}
	}
	program := filepath.Join(b.tmp, "duel")
	if _, err := b.command(ctx, nil, "mpicc", "-O2", "-o", program, filepath.Join("bench", "c", "duel.c")); err != nil {
		return nil, err
	}
	r, err := b.speaker(ctx, p, 1, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
		"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", program)
	if err != nil {
		return nil, err
	}
	order := func(line string) (x, y duel.Answer, err error) {
		if strings.HasPrefix(line, duel.Calls) {
			return x, y, errors.New("not measured")
		}
		if _, err := io.WriteString(r.in, line+"\n"); err != nil {
			return x, y, err
		}
		if x, err = r.answer(); err != nil {
			return x, y, err
		}
		y, err = r.answer()
		return x, y, err
	}
	return &carrier{name: "Open MPI, TCP", order: order, close: r.end}, nil
}
