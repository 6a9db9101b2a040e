package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/engine"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/spawn"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
)

// overHosts reports whether peers of the run may be on other hosts.
func (q *request) overHosts() bool { return q.rendezvous != "" || q.hosts != "" }

// takesPeers reports whether processes that solve does not start join the run.
func (q *request) takesPeers() bool { return q.rendezvous != "" || q.task != nil }

// maxHostFile bounds the size of a host file.
const maxHostFile = 1 << 24

// chooseHosts reads the hosts of --hosts and sets the number of peers by them.
func (a *app) chooseHosts(ctx context.Context, q *request) error {
	switch {
	case q.hosts == "" && (q.ssh != defaultSSH || q.program != ""):
		return usage("--ssh and --remote-program need --hosts FILE")
	case q.hosts == "":
		return nil
	case q.rendezvous != "" || q.secretFile != "":
		return usage("--hosts starts the peers by ssh and passes them a key of their own: leave out --rendezvous and " +
			"--secret-file")
	case q.inProcess:
		return usage("--hosts and --in-process exclude each other")
	case q.trace.file != "":
		return usage("--trace with --hosts: the files would be on the hosts; start the peers by hand with obstacle peer --trace")
	case len(strings.Fields(q.ssh)) == 0:
		return usage("--ssh is empty: give the command that runs a program on a host, such as ssh")
	}
	var err error
	if q.hostList, err = a.readHosts(ctx, q.hosts); err != nil {
		return err
	}
	if q.peers == 0 {
		for _, h := range q.hostList {
			q.peers += h.Slots
		}
		if q.peers -= q.Spares; q.peers < 1 {
			return usage("--spares %d: the hosts have no more processes than that", q.Spares)
		}
	}
	return nil
}

// readHosts reads a host file, or that of the batch system.
func (a *app) readHosts(ctx context.Context, name string) ([]engine.Host, error) {
	what, source := "--hosts", "--hosts "+name
	read := func() ([]byte, error) { return a.readAll(ctx, "--hosts", name, maxHostFile) }
	if name == "auto" {
		variable, from, list := engine.Source(os.LookupEnv)
		switch {
		case variable == "":
			return nil, usage("--hosts auto: no batch system lists the hosts of a job here (OAR_NODEFILE, PBS_NODEFILE, " +
				"PE_HOSTFILE, SLURM_JOB_NODELIST); name a file")
		case list != "":
			hosts, err := engine.Listed(list, os.Getenv("SLURM_TASKS_PER_NODE"))
			if err != nil {
				return nil, usage("--hosts auto: %s: %w", variable, err)
			}
			return hosts, nil
		}
		what = "--hosts auto: " + variable
		name, source = from, what+"="+from
		read = func() ([]byte, error) { return input.ReadFile(name, maxHostFile) } // no batch system writes a pipe
	}
	text, err := read()
	if err != nil {
		return nil, badInput(openMistake(what, name, err, "it holds one host a line"))
	}
	hosts, err := engine.ParseHosts(string(text))
	if err != nil {
		return nil, usage("%s: %w", source, err)
	}
	return hosts, nil
}

// seatHost returns the host on which a seat is started: the hosts take turns by their numbers of processes. Each
// further attempt is on the next host.
func seatHost(hosts []engine.Host, seat, attempt int) string {
	slots := 0
	for _, h := range hosts {
		slots += h.Slots
	}
	at := seat % slots
	for i, h := range hosts {
		if at -= h.Slots; at < 0 {
			return hosts[(i+attempt)%len(hosts)].Name
		}
	}
	return hosts[0].Name
}

// remote completes the plan of a run whose peers are started by ssh. They get the key of the run on their standard
// input, whose end ends them.
func (a *app) remote(q *request, p *launch.Plan) error {
	program := q.program
	if program == "" {
		exe, err := os.Executable()
		if err != nil {
			return failed(errors.New("cannot find the executable of this program: give --remote-program"))
		}
		program = exe
	}
	key := driver.NewKey()
	var err error
	if p.Identity, err = a.keyIdentity(key); err != nil {
		return failed(err)
	}
	name, _ := os.Hostname()
	started := map[int]int{}
	p.Address = ":0"
	p.Spawn = func(_ context.Context, seat int, listens string) (launch.Child, error) {
		host := seatHost(q.hostList, seat, started[seat])
		started[seat]++
		_, port, _ := net.SplitHostPort(listens)
		args := a.peerArgs(q, net.JoinHostPort(addressTowards(host), port), seat)
		if host == name || host == "localhost" {
			return a.startChild(program, args, keyLine(key))
		}
		command := strings.Fields(q.ssh)
		for i, arg := range args {
			args[i] = spelling.Quote(arg)
		}
		remote := spelling.Quote(program) + " " + strings.Join(args, " ")
		a.log.Debug().Str("host", host).Str("command", remote).Msg("starting a peer")
		c, err := spawn.Start(command[0], append(command[1:], host, remote), keyLine(key), a.childErrors())
		if err != nil {
			return nil, err
		}
		return &remoteChild{c, host}, nil
	}
	return nil
}

// remoteChild is a peer on another host.
type remoteChild struct {
	*spawn.Process
	host string
}

// Name names the host.
func (c *remoteChild) Name() string {
	return fmt.Sprintf("on %s, started by %s", c.host, c.Process.Name())
}

// addressTowards returns the address of this host at which another one reaches it, as far as the routes tell.
func addressTowards(host string) string {
	if _, after, found := strings.Cut(host, "@"); found {
		host = after
	}
	if c, err := net.Dial("udp", net.JoinHostPort(host, "9")); err == nil { // sends nothing
		defer c.Close()
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			return at.Addr().Unmap().WithZone("").String()
		}
	}
	if all := driver.Addresses(""); len(all) > 0 {
		return all[0].String()
	}
	return "127.0.0.1"
}

// continues makes the run go on from the checkpoint in the directory of --checkpoint, if there is one and it is to.
func (s *solveFlags) continues(ref string) error {
	q := s.request
	requeued := q.task != nil && q.Restarts > 0
	switch {
	case q.again && s.checkpoints.directory == "":
		return usage("--continue needs --checkpoint DIR")
	case q.from != nil || s.checkpoints.directory == "" || !q.again && !requeued ||
		!checkpoint.Holds(s.checkpoints.directory):
		return nil
	}
	found, err := checkpoint.Open(s.checkpoints.directory, q.catalog.Problems)
	if err != nil {
		return badInput(err)
	}
	spec, err := file.Open(q.catalog.Problems, ref, q.params)
	if err != nil {
		return badInput(err)
	}
	points, err := numbers("n", q.n)
	if err != nil {
		return badInput(err)
	}
	grid, err := problems.Grid(spec.Dimension(), points)
	if err != nil {
		return badInput(err)
	}
	if spec.Iteration() {
		grid = found.N // that of its unknowns
	}
	if spec.Fingerprint() != found.Spec.Fingerprint() || grid != found.N {
		return usage("--continue: %s is of another problem or grid (%s, %v): name another directory with --checkpoint",
			found.Name, found.Spec.Name(), found.N)
	}
	q.from = found
	return nil
}
