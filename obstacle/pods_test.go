//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// Names and addresses of an emulated Indexed Job.
const (
	jobName     = "obstacle"
	serviceName = "obstacle"
	podDomain   = "." + serviceName + ".default.svc.cluster.local."
	podPort     = "7400"
)

// job emulates an Indexed Job of Kubernetes. A Pod is a process with a network, a host name and a name server of its
// own. It is known by its name and the headless Service's, and gets a new address whenever it is created.
type job struct {
	t      *testing.T
	lab    *netlab.Lab
	router *netlab.Host
	secret string
	args   []string
	pods   []*pod // the newest of each index
	all    []*pod

	mu    sync.Mutex
	names map[string]netip.Addr
}

type pod struct {
	*running
	name string
	end  netlab.End
}

// startJob creates a Job of so many Pods.
func startJob(t *testing.T, size int, args ...string) *job {
	t.Helper()
	j := &job{t: t, lab: netlab.New(t), secret: secretFile(t, "the secret of this Job"), names: map[string]netip.Addr{}}
	j.args = append([]string{"solve"}, append(args, "--rendezvous", jobName+"-0."+serviceName+":"+podPort, "--secret-file",
		j.secret, "--format", "json")...)
	require.NoError(t, os.Chmod(j.secret, 0o440)) // as Kubernetes mounts a Secret: it belongs to another user
	require.NoError(t, os.Chown(j.secret, 65532, -1))
	j.router = j.lab.Host("router")
	for _, name := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
		if err := j.router.Sysctl(name, "1"); err != nil {
			t.Skipf("the emulation of a Job needs to forward packets: %v", err)
		}
	}
	j.serveNames()
	for index := range size {
		j.pods = append(j.pods, nil)
		j.create(index)
	}
	return j
}

// create creates the Pod of an index, or creates it again at another address.
func (j *job) create(index int) *pod {
	j.t.Helper()
	p := &pod{name: fmt.Sprintf("%s-%d", jobName, index)}
	var gateway netlab.End
	host := j.lab.Host(p.name)
	gateway, p.end = j.lab.Join(j.router, host, netlab.Wire{})
	require.NoError(j.t, host.Do(func() error { return routeVia(p.end.Interface, gateway) }))
	resolver := filepath.Join(j.t.TempDir(), "resolv.conf")
	text := fmt.Sprintf("nameserver %v\nsearch default.svc.cluster.local svc.cluster.local\noptions ndots:5\n",
		gateway.IPv4)
	require.NoError(j.t, os.WriteFile(resolver, []byte(text), 0o600))
	j.mu.Lock()
	j.names[p.name+podDomain] = p.end.IPv4
	j.mu.Unlock()
	within := func(start func() error) error {
		done := make(chan error)
		go func() { done <- host.Do(func() error { return asPod(p.name, resolver, start) }) }()
		return <-done
	}
	p.running = startAs(j.t, within, []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index)}, nil, j.args...)
	j.pods[index] = p
	j.all = append(j.all, p)
	return p
}

// routeVia adds the routes to all other Pods.
func routeVia(name string, gateway netlab.End) error {
	link, err := netlink.LinkByName(name)
	for _, ip := range []netip.Addr{gateway.IPv4, gateway.IPv6} {
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: ip.AsSlice()})
		}
	}
	return err
}

// asPod calls start on a thread with a host name and a name server of its own. It needs a goroutine of its own, since
// the thread must not run others.
func asPod(name, resolver string, start func() error) error {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount(resolver, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind mount of %s: %w", resolver, err)
	}
	return start()
}

// serveNames answers the queries of the Pods as the name server of a cluster does for Pods of a headless Service.
func (j *job) serveNames() {
	var c net.PacketConn
	err := j.router.Do(func() (err error) {
		c, err = net.ListenPacket("udp4", ":53")
		return err
	})
	require.NoError(j.t, err)
	j.t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			j.resolve(&m)
			if out, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(out, from)
			}
		}
	}()
}

// resolve makes a query its answer.
func (j *job) resolve(m *dnsmessage.Message) {
	q := m.Questions[0]
	j.mu.Lock()
	ip, known := j.names[strings.ToLower(q.Name.String())]
	j.mu.Unlock()
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired}
	m.Additionals = nil
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 5},
			Body:   &dnsmessage.AResource{A: ip.As4()},
		}}
	}
}

// remove deletes the Pod of an index without notice. Its address and its name vanish first, so that nobody is sent the
// end of its connections.
func (j *job) remove(index int) {
	j.t.Helper()
	p := j.pods[index]
	j.mu.Lock()
	delete(j.names, p.name+podDomain)
	j.mu.Unlock()
	require.NoError(j.t, p.end.Cut())
	p.mu.Lock()
	pid, spawned := p.pids[0]
	p.mu.Unlock()
	if p.signal(syscall.SIGKILL); spawned && index == 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // its peer is in the same container
	}
	<-p.done
}

// answer returns the only Pod that has printed an answer, when all have ended.
func (j *job) answer() (one *pod) {
	j.t.Helper()
	for _, p := range j.pods {
		p.wait(patience)
	}
	for _, p := range j.all {
		p.neverSaid("can read the run's secret")
		if p.stdout.Len() > 0 {
			require.Nil(j.t, one, "%s prints a second answer", p.name)
			one = p
		}
	}
	require.NotNil(j.t, one, "no answer")
	return one
}

// leads returns the Pod that leads the run after the loss of its leader.
func (j *job) leads() *pod {
	j.t.Helper()
	b := &byHand{running: j.pods[1].running}
	var all []*running
	for _, p := range j.pods[1:] {
		all = append(all, p.running)
	}
	leader := b.leads(all)
	for _, p := range j.pods {
		if p.running == leader {
			return p
		}
	}
	return nil
}
