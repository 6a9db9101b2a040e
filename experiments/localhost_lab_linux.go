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

	"github.com/p2pdc/p2pdc/ether"
	machine "github.com/p2pdc/p2pdc/internal/calibration"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Bytes around the payload of each frame: the headers of IP and UDP, and with those of the wire,
// which the system counts; and the burst that a wire of the laboratory lets pass (netlab.Wire).
const (
	linkFrame = 28
	wireFrame = 42
	wireBurst = 4 * labMTU
)

// calibrateInLab calibrates this machine over the link that the peers will have. The cores of the
// peers carry the frames, and the cost of that is part of the calibration.
func (c *localCase) calibrateInLab(ctx context.Context) (d *cluster.Description, err error) {
	err = measure.InLab(func(tb netlab.Reporter) (err error) {
		identity, err := driver.NewKeyIdentity(driver.NewKey(), "calibration")
		if err != nil {
			return err
		}
		l := netlab.New(tb)
		ends, link := c.join(l, 1)
		var p linkCost
		if link != nil {
			if p, err = probe(link); err != nil {
				return err
			}
		}
		w := &machine.Path{Identity: identity, Rate: labRate, Queue: labQueue, Frame: wireFrame}
		w.Open = func(end, mtu int) (microproto.Link, error) {
			inside := &linkInside{host: ends[end].Host}
			return inside, inside.host.Do(func() (err error) {
				inside.Link, err = ether.Open(ether.Config{Listen: ends[end].IPv4.String(), MTU: mtu})
				return err
			})
		}
		if c.where == onLink {
			w.Latency, w.Threads, w.Frame = labDelay, 1, linkFrame
			w.Spent = emulationTime
		}
		d, err = machine.ThisMachine(ctx, machine.Workload{
			N: labN, Peers: 2, MTU: labMTU, Asynchronous: c.scheme == "async", Path: w,
		})
		if err != nil {
			return err
		}
		n, class := &d.Networks[0], &d.Classes[0]
		n.Frame, n.Shaper = w.Frame, cluster.Shaper{Rate: labRate, Burst: wireBurst, Queue: labQueue}
		if c.where == onLink {
			n.Shaper.Burst, n.Shaper.Outside = 0, true
			n.Latency = labDelay + max(0, p.late-class.Wake.Takes)
			if c.scheme == "sync" {
				class.Send.Segment += p.frame
			}
		}
		return nil
	})
	return d, err
}

// linkInside is a link of a host of the laboratory for a node outside it.
type linkInside struct {
	*ether.Link
	host *netlab.Host
}

// Accept uses the routes of the host.
func (l *linkInside) Accept(offer []byte) (at microproto.LinkAddr, err error) {
	err = l.host.Do(func() (err error) { at, err = l.Link.Accept(offer); return err })
	return at, err
}

// join connects two hosts by the wire of a case or by the emulated link.
func (c *localCase) join(l *netlab.Lab, seed uint64) (ends [2]netlab.End, link *netlab.Link) {
	a, b := l.Host("a"), l.Host("b")
	if c.where == onWire {
		ends[0], ends[1] = l.Join(a, b, netlab.Wire{MTU: labMTU, Rate: labRate, Queue: labQueue})
		return ends, nil
	}
	k := netlab.Conditions{Rate: labRate, QueueBytes: labQueue, Delay: labDelay}
	link = l.Emulate(a, b, netlab.Emulation{Urgent: true, MTU: labMTU, Forth: k, Back: k, Seed: seed})
	return [2]netlab.End{link.A, link.B}, link
}

// runInLab runs two peers on two hosts of the laboratory.
func (c *localCase) runInLab(
	ctx context.Context, r *measure.Run, program string, seed uint64,
) (s measure.Solution, err error) {
	ctx, cancel := context.WithTimeout(ctx, labTime)
	defer cancel()
	secret := filepath.Join(r.Temp, "secret")
	if err := os.WriteFile(secret, []byte("the secret of these runs"), 0o600); err != nil {
		return s, err
	}
	err = measure.InLab(func(tb netlab.Reporter) error {
		l := netlab.New(tb)
		ends, _ := c.join(l, seed)
		launcher := exec.CommandContext(ctx, program, "solve", "membrane", "--n", strconv.Itoa(labN), "--tol", "1e-6",
			"--peers", "2", "--scheme", c.scheme, "--method", "richardson", "--threads", "1", "--sweeps-per-pass", "1",
			"--network", "ether", "--clusters", "1", "--rendezvous", net.JoinHostPort(ends[0].IPv4.String(), "0"),
			"--secret-file", secret, "--format", "json")
		messages, err := launcher.StderrPipe()
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
		address, err := rendezvousOf(bufio.NewScanner(messages))
		if err != nil {
			return errors.Join(err, launcher.Wait())
		}
		for i, end := range ends {
			peer := exec.CommandContext(ctx, program, "peer", "--rendezvous", address, "--listen", end.IPv4.String(),
				"--seat", strconv.Itoa(i), "--network", "ether", "--secret-file", secret)
			if err := end.Host.Do(peer.Start); err != nil {
				return err
			}
			defer func() { _ = peer.Wait() }()
		}
		err = json.NewDecoder(answer).Decode(&s)
		if err = errors.Join(err, launcher.Wait()); err != nil {
			return fmt.Errorf("a run in the laboratory: %w", err)
		}
		return nil
	})
	return s, err
}

var rendezvousLine = regexp.MustCompile(`waiting for \d+ peers at (\S+): `)

// rendezvousOf returns the address that a launcher prints, and drains the rest of its messages.
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
	return "", fmt.Errorf("the launcher printed no rendezvous address; its last line: %q", last)
}
