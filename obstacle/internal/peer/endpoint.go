package peer

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/trace"
)

// endpoint is the node of a peer in one epoch, with its links. Each epoch has its own, so that nothing that a lost or
// delayed peer of a former epoch sends can reach it.
type endpoint struct {
	p       *peer
	epoch   int
	node    *driver.Node
	link    *ether.Link
	network string      // effective value of --network
	ib      rail.Opened // the InfiniBand rail; zero if there is none
	noIB    string      // why there is none
	assign  *rendezvous.Assign
}

// listen opens the links and the node of an epoch.
func (p *peer) listen(epoch int) (*endpoint, error) {
	protect, err := p.protection()
	if err != nil {
		return nil, err
	}
	rows, err := p.Catalog.Optional(p.welcome.Spec.Congestion, p.welcome.Spec.Rows)
	if err != nil {
		return nil, err
	}
	identity, err := p.welcome.Control()
	if err != nil {
		return nil, err
	}
	e := &endpoint{p: p, epoch: epoch, assign: &rendezvous.Assign{}}
	rails, err := e.rails()
	if err != nil {
		return nil, err
	}
	if e.link, err = p.openEther(); err != nil {
		closeRails(rails)
		return nil, err
	}
	e.node, err = driver.New(driver.Config{
		Identity: identity, Protect: protect,
		Name:   nodeName(p.welcome.Rank, epoch),
		Rails:  append([]driver.Rail{{Network: p2psap.Ethernet, Link: e.link}}, rails...),
		Listen: net.JoinHostPort(p.Listen, "0"), PortLow: p.PortLow, PortHigh: p.PortHigh,
		Catalog: p.Catalog.Protocols, Policy: p2psap.TablePolicy{Optional: rows}, Cluster: p.welcome.Cluster,
		Run: e.run(), Version: p.Identity.Program,
		PeerTimeout: p.timeout(), Seed: p.welcome.Spec.Seed ^ uint64(p.welcome.Rank+1)<<32,
		Log: slog.New(zerolog.NewSlogHandler(p.log)), Trace: p.Trace.Ring(),
	})
	if err == nil {
		p.Trace.Add(e.node)
	}
	return e, err
}

// openEther opens the UDP link. If the interface is down, as during an outage after which a peer of this process takes
// the place of a lost one, it waits for the interface, at most for the peer timeout.
func (p *peer) openEther() (*ether.Link, error) {
	for end := time.Now().Add(p.timeout()); ; {
		l, err := ether.Open(ether.Config{
			Listen: p.Listen, PortLow: p.PortLow, PortHigh: p.PortHigh, MTU: p.welcome.Spec.MTU, Log: p.note,
		})
		if !errors.Is(err, ether.ErrInterfaceDown) || time.Now().After(end) {
			return l, err
		}
		p.log.Warn().Err(err).Msg("waiting for the interface")
		select {
		case <-time.After(interfaceRetry):
		case <-p.process.Done():
			return nil, p.process.Err()
		}
	}
}

const interfaceRetry = 200 * time.Millisecond

// run returns the name under which the nodes of the epoch accept each other.
func (e *endpoint) run() string {
	if e.epoch == 0 {
		return e.p.welcome.Run
	}
	return fmt.Sprintf("%s epoch %d", e.p.welcome.Run, e.epoch)
}

// report sends the address of the endpoint to the launcher.
func (e *endpoint) report() error {
	_, box := e.p.values.held()
	at := e.p.values.progress()
	l := rendezvous.Listen{
		Box:     box,
		Control: e.p.ways(e.node.ControlAddr()), Epoch: e.epoch, Sweep: uint64(at.Sweep), Omega: at.Omega,
		Idle: !e.p.values.relaxing(), Holding: e.p.copies.holding(),
	}
	e.p.listening.Store(&l)
	return e.p.leader.Send(l)
}

// recorder returns what takes the relaxations of a traced peer, nil for another.
func (e *endpoint) recorder() func(k trace.Kind, sweep uint64, points int) {
	if e.p.Trace == nil {
		return nil
	}
	return e.node.Record
}

// abort closes the node without waiting for other peers. Every call that blocks on it ends.
func (e *endpoint) abort() { _ = e.node.Abort() }
