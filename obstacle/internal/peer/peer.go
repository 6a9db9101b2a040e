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
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/host/pin"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/tracefile"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Options are the settings of a peer.
type Options struct {
	Rendezvous string // HOST:PORT of the launcher
	Identity   rendezvous.Identity
	Rank       int           // the rank requested; −1: any
	OrSpare    bool          // wait as a spare peer if the rank is taken
	Others     []string      // further addresses of the launcher, or of processes that may lead the run
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

	// OwnProcess states that the process runs this peer only, and those that the launcher asks it to run, so that the
	// peer may set GOMAXPROCS and the scheduling policy.
	OwnProcess bool

	// Bound states that the process ends with the launcher, so that it can be no keeper of the run.
	Bound bool

	Catalog   *catalog.Set
	Trace     *tracefile.File // takes the records of the nodes; may be nil
	Interrupt <-chan struct{} // closed to request an early end of the run; may be nil
	Leave     <-chan struct{} // closed to have the parts of this process moved to others; may be nil
	Log       zerolog.Logger

	// Hold bounds the time for which a process that leads the run after the loss of the launcher keeps the answer.
	Hold time.Duration

	// Led is called with the answer of a run that this process has led, instead; see launch.Plan. It may be nil.
	Led func(run *rendezvous.Spec, problem []byte, o *launch.Outcome) error

	// Continue is that of the plan of a run that this process leads; see launch.Plan. It may be nil.
	Continue func(p *launch.Plan, term int) launch.Saver

	// Over is called when the leader ends the run of this peer, and states whether it has reached its tolerance. It may
	// be nil. A peer whose part moved to another process, or that left, does not call it.
	Over func(solved bool)

	// VotePort is the port at which a keeper listens; 0: any of PortLow to PortHigh.
	VotePort int

	// Waiting is called if the process waits for a second or longer for a launcher or for its part, with what it waits
	// for. It may be nil.
	Waiting func(what string)

	waiting *waiting    // of this process
	others  *together   // the peers of this process
	memory  *shm.Memory // that joins them
	rejoins bool        // it took part before
	guest   bool        // the process runs another peer, which was asked to run this one
}

// rejoinTime bounds the attempts to join a run again. The path to the launcher may be repaired a little after the end
// of the connection was noticed.
const rejoinTime = 5 * time.Second

// Run takes part in one run until it is over. It returns nil if the run ended as the launcher requested, even early. It
// returns an error within seconds of the end of ctx or of the connection to the launcher.
//
// If the launcher of a run that recovers from losses has taken this peer for lost, the peer joins again, as a spare.
func Run(ctx context.Context, o Options) error {
	if o.others == nil {
		o.others, o.memory = new(together), shm.NewMemory()
	}
	if o.waiting == nil {
		o.waiting = newWaiting(o.Waiting)
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer o.waiting.end()
		go o.endWait(cancel)
	}
	again, err := one(ctx, &o)
	if !closed(o.waiting.begun) && (closed(o.Interrupt) || closed(o.Leave)) && err != nil && !errors.Is(err, errLeft) {
		return o.waiting.interrupted()
	}
	for again && ctx.Err() == nil && !o.others.finished() {
		o.Log.Warn().Str("why", "the connection to the launcher has ended, which may have given this peer's place away").
			Msg("joining the run again as a spare peer")
		o.Rank, o.Answer, o.DialTime, o.rejoins = -1, nil, rejoinTime, true
		var next error
		if again, next = one(ctx, &o); !errors.Is(next, errNotJoined) {
			err = next
		}
	}
	if errors.Is(err, member.ErrLauncherLeft) && o.others.finished() {
		return nil // another peer of this process joined again before this one, which was lost with it
	}
	if errors.Is(err, rendezvous.ErrNotNeeded) || errors.Is(err, errLeft) {
		o.Log.Info().Msg(err.Error())
		if o.Over != nil && errors.Is(err, rendezvous.ErrNotNeeded) {
			o.Over(!errors.Is(err, rendezvous.ErrEarly))
		}
		return nil
	}
	if left, is := errors.AsType[*ReportedError](err); is && len(o.Others) > 1 && errors.Is(left, member.ErrLauncherLeft) {
		text := "no process that leads the run was found at %s"
		if errors.Is(left, member.ErrNobody) {
			text = "nothing listens any more at %s: the run has ended, or its keepers were lost"
		}
		return fmt.Errorf("%w: "+text, ErrCutOff, strings.Join(rendezvous.FirstWays(o.Others), ", "))
	}
	return err
}

// endWait calls cancel if the process is asked to end before it has a part of a run.
func (o *Options) endWait(cancel func()) {
	select {
	case <-o.Interrupt:
	case <-o.Leave:
	case <-o.waiting.begun:
		return
	}
	if !closed(o.waiting.begun) {
		cancel()
	}
}

// ErrCutOff is the error of a peer that cannot reach enough keepers of the run. The run may go on without it.
var ErrCutOff = errors.New("this peer was cut off from the run")

// errNotJoined marks an error of a peer that did not take part.
var errNotJoined = errors.New("cannot join the run")

// one takes part once. It reports whether the peer may join again.
func one(ctx context.Context, o *Options) (again bool, err error) {
	conn, w, err := joinUnlessLeaving(ctx, o)
	if err != nil {
		if o.rejoins && !errors.Is(err, rendezvous.ErrNotNeeded) {
			err = fmt.Errorf("%w: %w", errNotJoined, err)
		}
		return false, err
	}
	p := newPeer(*o, conn, w)
	p.process = ctx
	defer p.leader.close()
	hangUp := context.AfterFunc(ctx, p.leader.close)
	defer hangUp()
	if err := conn.CloseWhenDead(p.timeout() + launch.StopTime); err != nil {
		o.Log.Debug().Err(err).Msg("a dead connection to the launcher will be detected late")
	}
	err = p.run(ctx)
	m := p.member
	o.Others = m.Term.Keepers
	if err == nil {
		p.leader.close() // if this process leads, it waits for that
	}
	moved := m.Bye != nil && m.Bye.Moved
	if wrong := p.keeping.end(); wrong != nil && (err == nil || moved) {
		return false, wrong
	}
	if err == nil && m.Bye != nil && !moved {
		if o.others.finish(); o.Over != nil {
			o.Over(!m.Bye.Early)
		}
	}
	if _, reported := errors.AsType[*ReportedError](err); reported || err == nil {
		return false, err
	}
	if moved {
		o.Log.Info().Int("rank", w.Rank).Msg("another process runs this part of the grid now")
		return false, nil
	}
	if errors.Is(err, member.ErrLauncherLeft) {
		left := &ReportedError{fmt.Sprintf("the launcher at %s left before the run was over", conn.Remote()), member.ErrLauncherLeft}
		if errors.Is(m.Why, member.ErrNobody) {
			left.cause = fmt.Errorf("%w: %w", member.ErrLauncherLeft, member.ErrNobody)
		}
		return w.Spec.Recovers() && m.Started, left
	}
	text := oneLine(err)
	failed := rendezvous.Result{Epoch: m.Epoch, Reason: launch.Failed, Error: text, Lost: lostRank(err)}
	_, failed.Panicked = errors.AsType[*iterate.PanicError](err)
	if p.leader.Send(failed) == nil {
		var cause error
		if unfit, is := errors.AsType[*UnfitError](err); is {
			cause = unfit
		}
		return false, &ReportedError{text, cause}
	}
	return false, errors.New(text)
}

// UnfitError is the error of a peer whose own settings do not fit the run.
type UnfitError struct{ error }

// Unwrap returns the reason.
func (e *UnfitError) Unwrap() error { return e.error }

// ReportedError is a failure that the launcher knows or has caused by its end.
type ReportedError struct {
	Text  string
	cause error
}

func (e *ReportedError) Error() string { return e.Text }

// Unwrap returns the cause; nil if there is none.
func (e *ReportedError) Unwrap() error { return e.cause }

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

type peer struct {
	Options
	leader  *leader
	in      *rendezvous.Conn // that receive reads
	welcome rendezvous.Welcome
	log     zerolog.Logger

	spec       *file.Spec       // nil before the first work
	problem    *problem.Problem // the same
	cut        problem.Partition
	balanced   bool                // planes move
	members    []rendezvous.Member // by rank; nil before the first work
	values     values
	copies     copies
	arrays     host.Arrays // of the method, in the epoch in progress
	ends       ends
	capturing  sync.Mutex                        // held while captured values are sent
	former     totals                            // of former epochs
	progress   atomicBeat                        // of the epoch in progress
	relaxes    atomic.Pointer[endpoint]          // of the epoch in which it relaxes; nil: it does not
	claim      pin.Claim                         // to processors; zero: none
	processors []int                             // of the claim
	began      time.Time                         // of the first epoch here
	idle       int64                             // resident peak before the block was allocated
	used       time.Duration                     // processor time of the process before the first relaxation
	hosted     hosted                            // other peers that this process runs
	hosting    atomic.Bool                       // there is one, or was
	listening  atomic.Pointer[rendezvous.Listen] // newest

	comparedInVain bool         // see noteComparisons
	settled        atomic.Int64 // newest epoch for which the peer is ready to relax
	keeping        keeping
	*shell
	process context.Context // in which this process may run other peers, and lead the run
}

func newPeer(o Options, conn *rendezvous.Conn, w rendezvous.Welcome) *peer {
	if w.Spec.Parts > 1 && o.Rail.Memory == nil {
		o.Rail.Memory, o.Rail.Others = o.memory, true
	}
	return &peer{
		Options: o, leader: newLeader(conn), welcome: w, shell: newShell(&o, &w),
		copies: copies{store: buddy.Store{Allocate: host.Array}},
		log:    o.Log.With().Int("rank", w.Rank).Logger(),
	}
}

// nodeName returns the name of the node of a rank in an epoch.
func nodeName(rank, epoch int) string {
	name := namePrefix + strconv.Itoa(rank)
	if epoch > 0 {
		name += "." + strconv.Itoa(epoch)
	}
	return name
}

const namePrefix = "peer-"

func (p *peer) note(line string) { p.log.Info().Msg(line) }

// protection returns that of the run, or an error if this peer requires another one.
func (p *peer) protection() (p2psap.Protection, error) {
	if p.Protect != "" && p.Protect != p.welcome.Spec.Protect {
		return 0, &UnfitError{fmt.Errorf("different protection: the run has --protect %s, this peer --protect %s",
			p.welcome.Spec.Protect, p.Protect)}
	}
	return p2psap.ParseProtection(p.welcome.Spec.Protect)
}

// advertised returns the control address for the other peers: where this one listens or, if it listens on all
// addresses, the address from which it reached the launcher.
func (p *peer) advertised(control net.Addr) string {
	host, port, _ := net.SplitHostPort(control.String())
	if p.Listen == "" || net.ParseIP(host) == nil || net.ParseIP(host).IsUnspecified() {
		host, _, _ = net.SplitHostPort(p.leader.local())
	}
	return net.JoinHostPort(host, port)
}

// ways returns what advertised returns and the other addresses of this peer; see rendezvous.Ways.
func (p *peer) ways(listens net.Addr) string {
	return rendezvous.Ways(p.advertised(listens), listens.String())
}

func (p *peer) timeout() time.Duration {
	return p.welcome.Spec.PeerTimeout
}

// expected returns an error if the problem is not the announced one or not the one that this peer accepts.
func (p *peer) expected(s *file.Spec, announced string) error {
	sum := s.Fingerprint()
	if got := hex.EncodeToString(sum[:]); got != announced {
		return fmt.Errorf("the received problem has the fingerprint %.16s, the launcher announced %.16s", got,
			announced)
	}
	if p.Expect != nil && p.Expect.Fingerprint() != sum {
		return &UnfitError{fmt.Errorf("different problems: the run solves %s (%.16x), this peer was started for %s (%.16x)",
			s.Name(), sum, p.Expect.Name(), p.Expect.Fingerprint())}
	}
	return nil
}
