// Package peer is one peer of a run, from joining the rendezvous to handing over
// its block. It is the same whether the launcher started it or a person did.
package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems/file"
)

// Options say which run a peer takes part in, and how it listens.
type Options struct {
	Rendezvous string // HOST:PORT of the launcher
	Identity   rendezvous.Identity
	Seat       int           // the rank wanted; -1: any
	DialTime   time.Duration // a rendezvous that is not there yet, or does not answer, is tried again for so long
	WaitTime   time.Duration // the launcher may take so long to answer

	Listen            string     // host of the control channel and the link; "": all addresses
	PortLow, PortHigh int        // 0: any free port
	Protect           string     // take part only if the run protects these sessions: auto, always or never; "": any
	Expect            *file.Spec // refuse to solve anything else; nil: whatever comes

	// Rail is where the InfiniBand rail is opened, and what this peer was told of it.
	Rail rail.Host

	// Answer is where the launcher wants the answer, for the whole grid of so many points;
	// nil: peers send it their blocks.
	Answer func(points int) ([]float64, error)

	// OwnProcess: nobody else computes in this process, so that it may keep to the
	// processors that the run's threads take.
	OwnProcess bool

	Catalog   *catalog.Set
	Tracer    microproto.Tracer // may be nil
	Interrupt <-chan struct{}   // closed: ask for an early end of the whole run; may be nil
	Log       zerolog.Logger
}

// Run takes part in one run and returns when it is over: nil when the run ended as its
// launcher wanted, also when it was stopped early. It returns within seconds of the end of
// ctx or of the connection to the launcher, with an error then.
func Run(ctx context.Context, o Options) error {
	conn, w, err := enter(ctx, &o)
	if err != nil {
		return err
	}
	defer conn.Close()
	hangUp := context.AfterFunc(ctx, func() { conn.Close() })
	defer hangUp()
	timeout := time.Duration(w.PeerTimeoutMS) * time.Millisecond
	if err := conn.EndWhenCut(timeout + launch.StopTime); err != nil {
		o.Log.Debug().Err(err).Msg("a cut connection to the launcher will be noticed late")
	}
	p := &peer{Options: o, conn: conn, welcome: w, log: o.Log.With().Int("rank", w.Rank).Logger()}
	err = p.takePart(ctx)
	var told *ToldError
	switch {
	case err == nil || errors.As(err, &told):
		return err
	case errors.Is(err, errOver):
		return &ToldError{fmt.Sprintf("the launcher at %s left before the run was over", conn.Remote())}
	}
	said := oneLine(err)
	if conn.Send(rendezvous.Result{Reason: launch.Failed, Error: said, Lost: lostRank(err)}) == nil {
		return &ToldError{said}
	}
	return errors.New(said)
}

// ToldError is a failure that the launcher knows of, or has caused by its end.
type ToldError struct{ What string }

func (e *ToldError) Error() string { return e.What }

// oneLine is the text of an error that may hold several, each said once.
func oneLine(err error) string {
	var lines []string
	for l := range strings.Lines(err.Error()) {
		l = strings.TrimSpace(l)
		known := slices.ContainsFunc(lines, func(have string) bool { return strings.Contains(have, l) })
		if l != "" && !known {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "; ")
}

// errOver says that the launcher has ended the run, or itself.
var errOver = errors.New("the launcher has left")

// peer is a peer that has joined.
type peer struct {
	Options
	conn    *rendezvous.Conn
	welcome rendezvous.Welcome
	log     zerolog.Logger

	assign   rendezvous.Assign
	initial  []float64
	reporter *reporter // of time steps; nil in a stationary run
	link     *ether.Link
	network  string       // the word of --network that this peer goes by
	second   *rail.Opened // the InfiniBand rail; nil: none
	without  string       // why there is none
	face     [][]byte     // memory of the rail
	node     *driver.Node
}

// nodeName is the name of a rank's node.
func nodeName(rank int) string { return namePrefix + strconv.Itoa(rank) }

const namePrefix = "peer-"

// listen opens the links and the node, and tells the launcher where.
func (p *peer) listen() error {
	protect, err := p.protection()
	if err != nil {
		return err
	}
	rows, err := p.Catalog.Optional(p.welcome.Congestion, p.welcome.Rows)
	if err != nil {
		return err
	}
	identity, err := p.welcome.Control()
	if err != nil {
		return err
	}
	better, err := p.rails()
	if err != nil {
		return err
	}
	p.link, err = ether.Open(ether.Config{
		Listen: p.Listen, PortLow: p.PortLow, PortHigh: p.PortHigh, MTU: p.welcome.MTU, Log: p.note,
	})
	if err != nil {
		closeRails(better)
		return err
	}
	p.node, err = driver.New(driver.Config{
		Identity: identity, Protect: protect,
		Name: nodeName(p.welcome.Rank), Rails: append([]driver.Rail{{Network: p2psap.Ethernet, Link: p.link}}, better...),
		Listen: net.JoinHostPort(p.Listen, "0"), PortLow: p.PortLow, PortHigh: p.PortHigh,
		Catalog: p.Catalog.Protocols, Policy: p2psap.TablePolicy{Optional: rows}, Cluster: p.welcome.Cluster,
		Run: p.welcome.Run, Version: p.Identity.Program,
		PeerTimeout: p.timeout(), Seed: p.welcome.Seed ^ uint64(p.welcome.Rank+1)<<32,
		Log: p.log, Tracer: p.Tracer,
	})
	if err != nil {
		return err
	}
	return p.conn.Send(rendezvous.Listen{Control: p.advertised()})
}

// note is what a link has to say.
func (p *peer) note(line string) { p.log.Info().Msg(line) }

// protection is what the run wants, if this peer wants it too.
func (p *peer) protection() (p2psap.Protection, error) {
	if p.Protect != "" && p.Protect != p.welcome.Protect {
		return 0, fmt.Errorf("different protection: the run has --protect %s, this peer --protect %s", p.welcome.Protect, p.Protect)
	}
	return p2psap.ParseProtection(p.welcome.Protect)
}

// advertised is the control address that the other peers are told: where this
// one listens, or, when it listens everywhere, the address by which it reached
// the launcher.
func (p *peer) advertised() string {
	host, port, _ := net.SplitHostPort(p.node.ControlAddr().String())
	if p.Listen == "" || net.ParseIP(host) == nil || net.ParseIP(host).IsUnspecified() {
		host, _, _ = net.SplitHostPort(p.conn.Local())
	}
	return net.JoinHostPort(host, port)
}

func (p *peer) timeout() time.Duration {
	return time.Duration(p.welcome.PeerTimeoutMS) * time.Millisecond
}

// expected refuses a run of another problem than the one this peer was told.
func (p *peer) expected(s *file.Spec) error {
	sum := s.Fingerprint()
	if got := hex.EncodeToString(sum[:]); got != p.assign.Fingerprint {
		return fmt.Errorf("the problem that came has the fingerprint %.16s, the launcher announced %.16s", got, p.assign.Fingerprint)
	}
	if p.Expect != nil && p.Expect.Fingerprint() != sum {
		return fmt.Errorf("different problems: the run solves %s (%.16x), this peer was started for %s (%.16x)",
			s.Name(), sum, p.Expect.Name(), p.Expect.Fingerprint())
	}
	return nil
}
