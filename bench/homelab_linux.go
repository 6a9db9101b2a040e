package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// labProbe measures what emulating the link of the lab takes.
func labProbe() (p probed, err error) {
	err = inLab(func(tb netlab.Reporter) (err error) {
		p, err = probe(emulated(netlab.New(tb), 1))
		return err
	})
	return p, err
}

// emulated is the link of the lab that delays.
func emulated(l *netlab.Lab, seed uint64) *netlab.Link {
	c := netlab.Conditions{Rate: homeLabRate, QueueBytes: homeLabQueue, Delay: homeLabDelay}
	return l.Emulate(l.Host("a"), l.Host("b"), netlab.Emulation{MTU: homeLabMTU, Forth: c, Back: c, Seed: seed})
}

// labRun is a run of two peers on two hosts of the lab.
func (b *bench) labRun(ctx context.Context, c *homeCase, r *rehearsed, bin string, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, homeLabTime)
	defer cancel()
	return inLab(func(tb netlab.Reporter) error {
		l, ends := netlab.New(tb), [2]netlab.End{}
		if c.where == labWire {
			ends[0], ends[1] = l.Join(l.Host("a"), l.Host("b"), netlab.Wire{MTU: homeLabMTU, Rate: homeLabRate, Queue: homeLabQueue})
		} else {
			link := emulated(l, seed)
			ends = [2]netlab.End{link.A, link.B}
		}
		secret := filepath.Join(b.tmp, "secret")
		if err := os.WriteFile(secret, []byte("the secret of these runs"), 0o600); err != nil {
			return err
		}
		launcher := exec.CommandContext(ctx, bin, "solve", "membrane", "--n", strconv.Itoa(homeLabN), "--tol", "1e-6", "--peers", "2", "--scheme", c.scheme,
			"--method", "richardson", "--threads", "1", "--together", "1", "--network", "ether", "--clusters", "1",
			"--rendezvous", net.JoinHostPort(ends[0].IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
		said, err := launcher.StderrPipe()
		if err != nil {
			return err
		}
		answer, err := launcher.StdoutPipe()
		if err != nil {
			return err
		}
		if err := ends[0].Host.Do(launcher.Start); err != nil {
			return err
		}
		defer func() { _ = launcher.Process.Kill() }()
		address, err := rendezvousOf(bufio.NewScanner(said))
		if err != nil {
			return errors.Join(err, launcher.Wait())
		}
		for i, end := range ends {
			peer := exec.CommandContext(ctx, bin, "peer", "--rendezvous", address, "--listen", end.IPv4.String(), "--seat", strconv.Itoa(i), "--network", "ether", "--secret-file", secret)
			if err := end.Host.Do(peer.Start); err != nil {
				return err
			}
			defer func() { _ = peer.Wait() }()
		}
		if err := json.NewDecoder(answer).Decode(r); err != nil {
			return errors.Join(fmt.Errorf("a run in the lab: %w", err), launcher.Wait())
		}
		if err := launcher.Wait(); err != nil {
			return fmt.Errorf("a run in the lab: %w", err)
		}
		return r.sound("a run in the lab")
	})
}

var rendezvousLine = regexp.MustCompile(`waiting for \d+ peers at (\S+): `)

// rendezvousOf waits until a launcher has said where, and then lets it say what it wants.
func rendezvousOf(s *bufio.Scanner) (string, error) {
	last := ""
	for s.Scan() {
		if m := rendezvousLine.FindStringSubmatch(s.Text()); m != nil {
			go func() {
				for s.Scan() {
				}
			}()
			return m[1], nil
		}
		last = s.Text()
	}
	return "", fmt.Errorf("the launcher does not say where it waits, but %q", last)
}
