package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/engine"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/meet"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/spawn"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// taskFlags are the flags of runs whose processes a batch system or an MPI launcher starts, or ssh.
type taskFlags struct {
	engine string
	meet   string
	again  bool

	hosts    string
	ssh      string
	program  string        // path on the hosts
	hostList []engine.Host // of hosts

	*task // nil: this process runs alone
}

func (t *taskFlags) add(f *pflag.FlagSet) {
	f.StringVar(&t.engine, "engine", engine.Auto,
		"what started this process as one of several: "+strings.Join(engine.Names(), ", "))
	f.StringVar(&t.meet, "meet", "",
		"directory that all hosts share, in which the processes of one command find each other (default: in your cache "+
			"directory)")
	f.BoolVar(&t.again, "continue", false,
		"with --checkpoint DIR: continue from the checkpoint in DIR if there is one (default: only in a requeued job)")
	f.StringVar(&t.hosts, "hosts", "",
		"file with the hosts on which to start the peers by ssh, or auto: the list of PBS, Grid Engine, OAR or Slurm")
	f.StringVar(&t.ssh, "ssh", defaultSSH, "with --hosts: command that runs a program on a host, such as oarsh")
	f.StringVar(&t.program, "remote-program", "", "with --hosts: path of obstacle on the hosts (default: as on this one)")
}

// defaultSSH never asks for a password: many would ask at once.
const defaultSSH = "ssh -o BatchMode=yes"

// task is a process that an engine has started with others.
type task struct {
	engine.Task
	published bool   // the others know where to join, or that there is no run
	meeting   string // directory; empty: the others know the address and the secret

	named    string        // host of the first process, as the user gave it
	within   time.Duration // bounds the attempts to join; 0: --join-timeout
	over     atomic.Bool   // the leader has ended the run
	solved   atomic.Bool   // at its tolerance
	answered atomic.Bool   // by this process, which led the run
}

// maxAncestors bounds the search for the process of a task.
const maxAncestors = 64

// ancestors returns the numbers of this process, its parent, and so on, as far as the system tells.
func ancestors() []int {
	all := []int{os.Getpid(), os.Getppid()}
	for len(all) < maxAncestors {
		_, next := host.Process(all[len(all)-1])
		if next <= 0 {
			break
		}
		all = append(all, next)
	}
	return all
}

// readTask sets the task that this process is.
func (a *app) readTask(q *request) error {
	if err := checkWords("engine", q.engine); err != nil {
		return err
	}
	name, _ := os.Hostname()
	t, err := engine.Read(os.LookupEnv, cmp.Or(q.engine, engine.Auto), engine.Process{Host: name, Ancestors: ancestors()})
	if err != nil {
		return badInput(err)
	}
	if t.Ignored != "" {
		a.log.Info().Msg("this process runs alone: " + t.Ignored)
	}
	if !t.Parallel() {
		return nil
	}
	if t.Engine == engine.MPICH && t.Job == "" {
		if fd, err := strconv.Atoi(os.Getenv("PMI_FD")); err == nil {
			if t.Job, err = meet.PMIJob(fd); err != nil {
				a.log.Info().Err(err).Msg("the job's name is unknown")
			}
		}
	}
	q.task = &task{Task: t}
	return nil
}

// alone returns an error if several processes were started with a command that is for one.
func (a *app) alone(command string) error {
	q := request{}
	if err := a.readTask(&q); err != nil || q.task == nil {
		return err
	}
	return usage("this process is one of several (%s), and obstacle %s is for one: start one process, or obstacle solve",
		q.Why, command)
}

// asTask takes part in the run as a peer if this process is one of several and not the first. If it is the first, it
// prepares the request.
func (a *app) asTask(c *cobra.Command, s *solveFlags) (done bool, err error) {
	q := s.request
	if err := a.readTask(q); err != nil {
		return true, err
	}
	if q.task == nil {
		if q.meet != "" {
			return true, usage("--meet %s: no launcher has started this process as one of several; start it with srun, "+
				"mpirun or mpiexec, or name the launcher with --engine", q.meet)
		}
		if unused := engine.Unused(os.LookupEnv); unused != "" && q.engine != engine.None && q.hosts == "" {
			a.say("this process runs alone on this host, and " + unused + ": srun obstacle solve … uses them all; " +
				"--engine none says that one is enough")
		}
		return false, nil
	}
	if err = q.size(c.Flags()); err != nil && q.task.Engine == engine.Kubernetes {
		return true, err // each Pod has a log of its own
	}
	if err != nil && q.Rank > 0 {
		a.log.Info().Err(err).Int("process", q.Rank).Msg("the first process says why")
		return true, &exitError{code: ExitUsage}
	}
	if err == nil {
		err = q.whereToMeet()
	}
	if q.Rank == 0 && err == nil {
		return a.rejoin(c.Context(), s)
	}
	if q.Rank == 0 {
		return false, err
	}
	if err == nil {
		err = a.takePart(c.Context(), s)
	}
	if err != nil && err.Error() != "" {
		return true, &exitError{exitCode(err), fmt.Errorf("process %d of %d: %w", q.Rank, q.Size, err)}
	}
	return true, err
}

// size sets the number of peers by the number of processes.
func (q *request) size(f *pflag.FlagSet) error {
	switch t := q.task; {
	case q.inProcess:
		return usage("--in-process: %s has started several processes (%s); start one, or leave out --in-process", t.Engine,
			t.Why)
	case q.hosts != "":
		return usage("--hosts: %s has started several processes (%s); start one, or leave out --hosts", t.Engine, t.Why)
	case t.Size == 0 && q.peers < 1:
		return usage("%s does not state how many processes there are (%s): give --peers, or --engine none if each is to "+
			"solve a problem of its own", t.Engine, t.Why)
	case t.Size == 0:
		t.Size = q.peers + q.Spares
	case q.peers == 0:
		q.peers = t.Size - q.Spares
	}
	if q.peers < 1 || q.peers+q.Spares != q.Size {
		return usage("--peers %d and --spares %d do not make the %d processes that %s has started (%s)", q.peers, q.Spares,
			q.Size, q.Engine, q.Why)
	}
	if q.Rank >= q.Size {
		return usage("%s, but there are %d processes by --peers %d and --spares %d", q.Why, q.Size, q.peers, q.Spares)
	}
	if q.threads == 0 && q.task.Threads > 0 {
		q.threads = q.task.Threads
	}
	q.Spares = 0 // they join by themselves
	q.Elastic = q.Elastic || q.Recover != rendezvous.RecoverOff && !f.Changed("elastic")
	return nil
}

// whereToMeet sets the directory, or the address with its secret, by which the processes find each other.
func (q *request) whereToMeet() (err error) {
	t := q.task
	if q.rendezvous != "" {
		name, port, err := net.SplitHostPort(q.rendezvous)
		switch t.named = name; {
		case err != nil:
			return usage("--rendezvous %s: want HOST:PORT, or :PORT for the host of process 0", q.rendezvous)
		case q.secretFile == "":
			return usage("--rendezvous needs --secret-file FILE, the same for every process; - for standard input, which " +
				"srun passes to all; or leave both out, and the processes meet in a directory (--meet)")
		case q.meet != "":
			return usage("--rendezvous and --meet exclude each other")
		case t.Rank == 0:
			if _, err := netip.ParseAddr(name); err != nil { // a name that may not resolve here
				name = ""
			}
		case name == "" && t.Leader == "":
			return usage("--rendezvous %s: %s does not state the host of process 0, so name it", q.rendezvous, t.Engine)
		case name == "":
			name = t.Leader
		}
		q.rendezvous = net.JoinHostPort(name, port)
		return nil
	}
	if q.secretFile != "" {
		return usage("--secret-file needs --rendezvous HOST:PORT, or :PORT for the host of process 0")
	}
	if t.Job == "" {
		if q.meet == "" {
			return usage("%s states no name of the job by which its processes could find each other: give --meet DIR, a "+
				"new directory for each run", t.Engine)
		}
		t.Job = "run"
	}
	if t.meeting = q.meet; t.meeting == "" {
		if t.meeting, err = meet.Default(); err != nil {
			return badInput(err)
		}
	}
	if t.Rank == 0 {
		if q.rendezvous = ":0"; t.OneHost {
			loopback, err := driver.Loopback()
			if err != nil {
				return failed(err)
			}
			q.rendezvous = net.JoinHostPort(loopback, "0")
		}
	}
	return badInput(meet.Check(t.meeting))
}

// refuse lets the other processes know that there is no run, unless they have joined it.
func (q *request) refuse(err error) {
	if q.task == nil || q.Rank > 0 || err == nil || q.published || q.meeting == "" {
		return
	}
	q.published = true
	name, _ := os.Hostname()
	place := meet.Place{Host: name, Pid: os.Getpid(), Refused: err.Error()}
	_, _ = meet.Publish(q.meeting, q.Job, place, func(meet.Place) bool { return true })
}

// alive reports whether the run of a place goes on.
func (a *app) alive(p meet.Place) bool {
	id, err := a.placeIdentity(p)
	return err == nil && slices.ContainsFunc(p.Addresses, func(address string) bool {
		return ask(context.Background(), id, address) == nil
	})
}

func (a *app) placeIdentity(p meet.Place) (rendezvous.Identity, error) {
	var key driver.Key
	if copy(key[:], p.Key) != len(key) || len(p.Key) != len(key) {
		return rendezvous.Identity{}, fmt.Errorf("the key of the run has %d bytes, not %d", len(p.Key), len(key))
	}
	return a.keyIdentity(key)
}

// lead completes the plan of the first process, which leads the run and starts a peer of its own.
func (a *app) lead(ctx context.Context, q *request, p *launch.Plan) error {
	line, key := []byte(nil), driver.NewKey()
	var err error
	if q.meeting != "" {
		line = keyLine(key)
		p.Identity, err = a.keyIdentity(key)
	} else {
		var secret []byte
		if secret, err = a.secret(ctx, q.secretFile); err == nil {
			line = secretLine(secret)
			p.Identity, err = a.secretIdentity(secret)
		}
	}
	if err != nil {
		return badInput(err)
	}
	exe, err := spawn.Executable()
	if err != nil {
		return failed(fmt.Errorf("cannot find the executable of this program: %w", err))
	}
	p.Notes = nil // no obstacle attach is needed
	p.Listening = func(address string) error {
		all := host.Addresses(address, cmp.Or(q.Leader, "localhost"))
		a.log.Info().Strs("addresses", all).Str("by", q.Why).Msg("leading the run of several processes")
		if q.meeting != "" {
			name, _ := os.Hostname()
			place := meet.Place{Addresses: all, Key: key[:], Host: name, Pid: os.Getpid()}
			remove, err := meet.Publish(q.meeting, q.Job, place, a.alive)
			if err != nil {
				return badInput(err)
			}
			a.atEnd(remove)
		}
		q.published = true
		return a.ownPeer(q, exe, all[0], line)
	}
	return nil
}

// ownPeer starts the peer of the first process.
func (a *app) ownPeer(q *request, exe, address string, line []byte) error {
	args := a.peerArgs(q, address, 0)
	if q.OneHost {
		loopback, err := driver.Loopback()
		if err != nil {
			return failed(err)
		}
		args = append(args, "--listen", loopback)
	}
	if q.trace.file != "" {
		args = append(args, q.trace.args(traceName(q.trace.file, 0))...)
	}
	child, err := a.startChild(exe, args, line)
	if err != nil {
		return failed(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := child.Wait(); err != nil {
			a.log.Warn().Err(err).Msg("the peer of the first process has ended")
		}
	}()
	a.atEnd(func() {
		select {
		case <-ended:
		case <-time.After(launch.StopTime):
			child.Kill()
		}
	})
	return nil
}

func portNumber(s string) int {
	n, _ := strconv.ParseUint(s, 10, 16)
	return int(n)
}
