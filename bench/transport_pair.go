package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
)

// hosts are where the two ends of a transport run: their addresses, and how to start a process on
// each.
type hosts struct {
	name    string
	address [2]string
	start   [2]func(func() error) error
	close   func()
}

// loopback returns this host, twice.
func loopback() hosts {
	here := func(f func() error) error { return f() }
	return hosts{
		name: "loopback", address: [2]string{"127.0.0.1", "127.0.0.1"},
		start: [2]func(func() error) error{here, here}, close: func() {},
	}
}

// pair is a transport with both of its ends, each in a process.
type pair struct {
	do    func(command string) (leader, other twonode.Answer, err error)
	close func()
}

// transportKind is a transport and how to open it.
type transportKind struct {
	kind, name string
	open       func(context.Context, *measure.Run, hosts) (*pair, error)
}

// ownTransport is a transport of which this program is both ends.
func ownTransport(kind, name string) transportKind {
	return transportKind{kind, name, func(ctx context.Context, r *measure.Run, h hosts) (*pair, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return openPair(ctx, r, h, self, "-end", kind)
	}}
}

// transports returns all transports between two hosts. This program is both ends of most of them.
func transports(h hosts) []transportKind {
	all := []transportKind{
		ownTransport(kindOurs, "P2PSAP"),
		ownTransport(kindSealed, "P2PSAP, protected"),
		ownTransport(kindAsync, "P2PSAP, asynchronous"),
		ownTransport(kindStream, "P2PSAP over kernel TCP"),
		ownTransport(kindSealedStream, "P2PSAP over kernel TCP, protected"),
		ownTransport(kindChosen, "P2PSAP, UDP or kernel TCP as the nodes choose"),
		ownTransport(kindTCP, "TCP in Go, reno"), {"quic", "quic-go, a stream", openQUIC},
		{"mpi", "Open MPI, TCP", mpi("tcp,self")},
		ownTransport(kindDatagrams, "plain datagrams"),
	}
	if h.address[0] == h.address[1] {
		all = append(all, ownTransport(kindShared, "P2PSAP, shared memory"),
			transportKind{kindVader, "Open MPI, shared memory", mpi("vader,self")})
	}
	return all
}

// kindVader is Open MPI's transport between processes of one host.
const kindVader = "mpi-shm"

// startOn starts a program on one of the hosts.
func startOn(ctx context.Context, r *measure.Run, h hosts, side int, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.Root
	return startBy(h.start[side], cmd)
}

// answer reads the answer to a command.
func (p *process) answer() (a twonode.Answer, err error) {
	l, err := p.line()
	if err == nil {
		err = json.Unmarshal([]byte(l), &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// ask sends a command to processes and returns the answers of the leading end and of the other one.
func ask(command string, leader, other *process, to ...*process) (x, y twonode.Answer, err error) {
	for _, p := range to {
		if err := p.command(command); err != nil {
			return x, y, err
		}
	}
	if x, err = leader.answer(); err != nil {
		return x, y, err
	}
	y, err = other.answer()
	return x, y, err
}

// openPair starts a transport whose two ends are processes of a program with the same arguments.
func openPair(ctx context.Context, r *measure.Run, h hosts, program string, args ...string) (*pair, error) {
	called, err := startOn(ctx, r, h, 0, program, append(args, "-host", h.address[0])...)
	if err != nil {
		return nil, err
	}
	address, err := called.line()
	if err != nil {
		called.stop()
		return nil, err
	}
	caller, err := startOn(ctx, r, h, 1, program, append(args, "-host", h.address[1], "-call", address)...)
	if err != nil {
		called.stop()
		return nil, err
	}
	do := func(command string) (x, y twonode.Answer, err error) {
		return ask(command, caller, called, called, caller)
	}
	return &pair{do: do, close: func() { caller.stop(); called.stop() }}, nil
}

// openQUIC builds the program of another module: this one does not depend on QUIC.
func openQUIC(ctx context.Context, r *measure.Run, h hosts) (*pair, error) {
	program := filepath.Join(r.Temp, "quic")
	if _, err := os.Stat(program); err != nil {
		peers := filepath.Join("bench", "peers")
		if _, err := r.Command(ctx, nil, "go", "-C", peers, "build", "-o", program, "./quic"); err != nil {
			return nil, err
		}
	}
	return openPair(ctx, r, h, program)
}

// mpi returns what starts both ranks of Open MPI on this host, over these of its byte transfer layers.
func mpi(layers string) func(context.Context, *measure.Run, hosts) (*pair, error) {
	return func(ctx context.Context, r *measure.Run, h hosts) (*pair, error) {
		if h.address[0] != h.address[1] {
			return nil, fmt.Errorf("%w: mpirun reaches another host by ssh, which these hosts lack", measure.ErrUnavailable)
		}
		for _, name := range []string{"mpicc", "mpirun"} {
			if _, err := exec.LookPath(name); err != nil {
				return nil, fmt.Errorf("%w: %s (Debian: openmpi-bin, libopenmpi-dev)", measure.ErrUnavailable, name)
			}
		}
		program := filepath.Join(r.Temp, "twonode")
		source := filepath.Join("bench", "c", "twonode.c")
		if _, err := r.Command(ctx, nil, "mpicc", "-O2", "-o", program, source); err != nil {
			return nil, err
		}
		p, err := startOn(ctx, r, h, 1, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
			"--mca", "pml", "ob1", "--mca", "btl", layers, "--mca", "btl_tcp_if_include", "lo", program)
		if err != nil {
			return nil, err
		}
		do := func(command string) (x, y twonode.Answer, err error) { return ask(command, p, p, p) }
		return &pair{do: do, close: p.stop}, nil
	}
}
