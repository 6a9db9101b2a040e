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
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	machine "github.com/p2pdc/p2pdc/simulate/cluster/calibration"
)

// What is on the wire around each frame's payload: the headers of IP and UDP, and the wire's own,
// which the system counts; and what a wire of the lab lets pass at once (internal/netlab, Wire).
const (
	homeLinkFrame = 28
	homeWireFrame = 42
	homeWireBurst = 4 * homeLabMTU
)

// labModel calibrates this machine in the lab, over the link that the peers will have. The frames
// are carried by the cores of the peers: what that takes is measured too.
func (c *homeCase) labModel(ctx context.Context) (d *cluster.Description, err error) {
	err = inLab(func(tb netlab.Reporter) (err error) {
		identity, err := driver.NewKeyIdentity(driver.NewKey(), "calibration")
		if err != nil {
			return err
		}
		l := netlab.New(tb)
		ends, link := c.join(l, 1)
		var p probed
		if link != nil {
			if p, err = probe(link); err != nil {
				return err
			}
		}
		w := &machine.Path{Identity: identity, Rate: homeLabRate, Queue: homeLabQueue, Frame: homeWireFrame}
		w.Open = func(end, mtu int) (microproto.Link, error) {
			inside := &linkInside{host: ends[end].Host}
			return inside, inside.host.Do(func() (err error) {
				inside.Link, err = ether.Open(ether.Config{Listen: ends[end].IPv4.String(), MTU: mtu})
				return err
			})
		}
		if c.where == labLink {
			w.Latency, w.Threads, w.Frame = homeLabDelay, 1, homeLinkFrame
			w.Spent = func() time.Duration { return used(unix.RUSAGE_SELF) - used(unix.RUSAGE_THREAD) }
		}
		d, err = machine.ThisMachine(ctx, machine.Workload{N: homeLabN, Peers: 2, MTU: homeLabMTU, Asynchronous: c.scheme == "async", Path: w})
		if err != nil {
			return err
		}
		n, class := &d.Networks[0], &d.Classes[0]
		n.Frame, n.Shaper = w.Frame, cluster.Shaper{Rate: homeLabRate, Burst: homeWireBurst, Queue: homeLabQueue}
		if c.where == labLink {
			n.Shaper.Burst = 0
			n.Latency = homeLabDelay + max(0, p.late-class.Wake.Takes)
			if c.scheme == "sync" {
				class.Send.Segment += p.frame
			}
		}
		return nil
	})
	return d, err
}

// linkInside is a link of a host of the lab that a node outside it uses.
type linkInside struct {
	*ether.Link
	host *netlab.Host
}

// Accept asks the routes of the host.
func (l *linkInside) Accept(offer []byte) (at microproto.LinkAddr, err error) {
	err = l.host.Do(func() (err error) { at, err = l.Link.Accept(offer); return err })
	return at, err
}

// join lays the wire of a case, or the link that a thread emulates.
func (c *homeCase) join(l *netlab.Lab, seed uint64) (ends [2]netlab.End, link *netlab.Link) {
	a, b := l.Host("a"), l.Host("b")
	if c.where == labWire {
		ends[0], ends[1] = l.Join(a, b, netlab.Wire{MTU: homeLabMTU, Rate: homeLabRate, Queue: homeLabQueue})
		return ends, nil
	}
	k := netlab.Conditions{Rate: homeLabRate, QueueBytes: homeLabQueue, Delay: homeLabDelay}
	link = l.Emulate(a, b, netlab.Emulation{MTU: homeLabMTU, Forth: k, Back: k, Seed: seed})
	return [2]netlab.End{link.A, link.B}, link
}

// labRun is a run of two peers on two hosts of the lab.
func (b *bench) labRun(ctx context.Context, c *homeCase, r *rehearsed, bin string, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, homeLabTime)
	defer cancel()
	return inLab(func(tb netlab.Reporter) error {
		l := netlab.New(tb)
		ends, _ := c.join(l, seed)
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
