//go:build linux

package pin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
)

// Allowed returns the processors that this process may use.
func Allowed() ([]Processor, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot read which processors may be used (sched_getaffinity): %w", err)
	}
	var all []Processor
	for id, left := 0, set.Count(); left > 0; id++ {
		if set.IsSet(id) {
			all = append(all, processor("/sys/devices/system/cpu", id))
			left--
		}
	}
	return all, nil
}

// processor reads where a processor is. What the system does not tell is as on a machine of one node whose cores have
// one processor each.
func processor(root string, id int) Processor {
	folder := filepath.Join(root, "cpu"+strconv.Itoa(id))
	number := func(name string, otherwise int) int {
		b, err := os.ReadFile(filepath.Join(folder, "topology", name))
		n, bad := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || bad != nil || n < 0 {
			return otherwise
		}
		return n
	}
	p := Processor{ID: id, Core: number("core_id", id), Package: number("physical_package_id", 0)}
	nodes, _ := filepath.Glob(filepath.Join(folder, "node[0-9]*"))
	for _, n := range nodes {
		if k, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(n), "node")); err == nil {
			p.Node = k
		}
	}
	return p
}

// Claim is this process's claim to some processors. Runs on one host thus do not bind their peers to the same ones.
type Claim []net.Listener

// Bind claims processors and binds all threads of this process, and those they start, to them. If another process has
// claimed one, or the system forbids it, nothing is bound, and the error says why.
func Bind(ids []int) (Claim, error) { return bind("p2pdc/processor", ids) }

func bind(name string, ids []int) (Claim, error) {
	var c Claim
	var set unix.CPUSet
	for _, id := range ids {
		// An abstract socket: it vanishes with the process.
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@%s/%d", name, id), Net: "unix"})
		if err != nil {
			c.Release()
			if errors.Is(err, unix.EADDRINUSE) {
				return nil, fmt.Errorf("a peer of another run is bound to processor %d", id)
			}
			return nil, fmt.Errorf("cannot claim processor %d: %w", id, err)
		}
		c = append(c, l)
		set.Set(id)
	}
	if err := bindAll(&set); err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

func bindAll(set *unix.CPUSet) error {
	return host.EachThread("the system does not bind threads to processors (sched_setaffinity)",
		func(id int) error { return unix.SchedSetaffinity(id, set) })
}

// Release gives the claim up. The threads stay bound.
func (c Claim) Release() {
	for _, l := range c {
		_ = l.Close()
	}
}
