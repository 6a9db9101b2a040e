// Package peer runs one peer, from joining the rendezvous to sending its block, whether the launcher or a user
// started it.
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
	"github.com/p2pdc/p2pdc/obstacle/internal/host/pin"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems/file"
)

// Options are the settings of a peer.
type Options struct {
	Rendezvous string // HOST:PORT of the launcher
	Identity   rendezvous.Identity
	Rank       int           // the rank requested; −1: any
	DialTime   time.Duration // bounds the attempts to reach a rendezvous that does not answer yet
	WaitTime   time.Duration // bounds the wait for the answer of the launcher

	Listen            string     // address of the control channel and the link; "": all addresses
	PortLow, PortHigh int        // 0: any free port
	Protect           string     // required protection of the run: auto, always or never; "": any
	Expect            *file.Spec // the only problem that the peer accepts; nil: any

	// Rail holds the settings of the networks of this peer.
	Rail rail.Host

	// Answer returns memory that is shared with the launcher, for the whole grid of that many points. If it is nil, the
	// peer sends its block.
	Answer func(points int) ([]float64, error)

	// OwnProcess states that the process runs this peer only, so that the peer may set GOMAXPROCS and the scheduling
	// policy.
	OwnProcess bool

	Catalog   *catalog.Set
	Tracer    microproto.Tracer // may be nil
	Interrupt <-chan struct{}   // closed to request an early end of the run; may be nil
	Log       zerolog.Logger
}

// Run takes part in one run until it is over. It returns nil if the run ended as the launcher requested, even early. It
// returns an error within seconds of the end of ctx or of the connection to the launcher.
func Run(ctx context.Context, o Options) error {
	conn, w, err := join(ctx, &o)
	if err != nil {
		return err
	}
	defer conn.Close()
	hangUp := context.AfterFunc(ctx, func() { conn.Close() })
	defer hangUp()
	p := &peer{Options: o, conn: conn, welcome: w, log: o.Log.With().Int("rank", w.Rank).Logger()}
	if err := conn.CloseWhenDead(p.timeout() + launch.StopTime); err != nil {
		o.Log.Debug().Err(err).Msg("a dead connection to the launcher will be detected late")
	}
	err = p.run(ctx)
	if _, reported := errors.AsType[*ReportedError](err); reported || err == nil {
		return err
	}
	if errors.Is(err, errLauncherLeft) {
		return &ReportedError{fmt.Sprintf("the launcher at %s left before the run was over", conn.Remote())}
	}
	text := oneLine(err)
	if conn.Send(rendezvous.Result{Reason: launch.Failed, Error: text, Lost: lostRank(err)}) == nil {
		return &ReportedError{text}
	}
	return errors.New(text)
}

// ReportedError is a failure that the launcher knows or has caused by its end.
type ReportedError struct{ Text string }

func (e *ReportedError) Error() string { return e.Text }

// oneLine returns the text of a joined error in one line, without repetitions.
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

var errLauncherLeft = errors.New("the launcher has left")

type peer struct {
	Options
	conn    *rendezvous.Conn
	welcome rendezvous.Welcome
	log     zerolog.Logger

	assign     rendezvous.Assign
	initial    []float64
	reporter   *reporter // of time steps
	link       *ether.Link
	network    string      // effective value of --network
	ib         rail.Opened // the InfiniBand rail; zero if there is none
	noIB       string      // why there is none
	claim      pin.Claim   // to processors; zero: none
	processors []int       // of the claim
	node       *driver.Node
}

func nodeName(rank int) string { return namePrefix + strconv.Itoa(rank) }

const namePrefix = "peer-"

// listen opens the links and the node, and sends the address to the launcher.
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
	rails, err := p.rails()
	if err != nil {
		return err
	}
	p.link, err = ether.Open(ether.Config{
		Listen: p.Listen, PortLow: p.PortLow, PortHigh: p.PortHigh, MTU: p.welcome.MTU, Log: p.note,
	})
	if err != nil {
		closeRails(rails)
		return err
	}
	p.node, err = driver.New(driver.Config{
		Identity: identity, Protect: protect,
		Name:   nodeName(p.welcome.Rank),
		Rails:  append([]driver.Rail{{Network: p2psap.Ethernet, Link: p.link}}, rails...),
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

func (p *peer) note(line string) { p.log.Info().Msg(line) }

// protection returns that of the run, or an error if this peer requires another one.
func (p *peer) protection() (p2psap.Protection, error) {
	if p.Protect != "" && p.Protect != p.welcome.Protect {
		return 0, fmt.Errorf("different protection: the run has --protect %s, this peer --protect %s",
			p.welcome.Protect, p.Protect)
	}
	return p2psap.ParseProtection(p.welcome.Protect)
}

// advertised returns the control address for the other peers: where this one listens or, if it listens on all
// addresses, the address from which it reached the launcher.
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

// expected returns an error if the problem is not the announced one or not the one that this peer accepts.
func (p *peer) expected(s *file.Spec) error {
	sum := s.Fingerprint()
	if got := hex.EncodeToString(sum[:]); got != p.assign.Fingerprint {
		return fmt.Errorf("the received problem has the fingerprint %.16s, the launcher announced %.16s", got,
			p.assign.Fingerprint)
	}
	if p.Expect != nil && p.Expect.Fingerprint() != sum {
		return fmt.Errorf("different problems: the run solves %s (%.16x), this peer was started for %s (%.16x)",
			s.Name(), sum, p.Expect.Name(), p.Expect.Fingerprint())
	}
	return nil
}
