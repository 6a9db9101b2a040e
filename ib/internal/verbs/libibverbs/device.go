//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// device is an ibv_context.
type device struct {
	object
	provider *provider
	lib      *library
	name     string
	context  uintptr
	ops      *cContext
	limits   verbs.Limits
	events   *waiter
}

// initialise reads the limits and prepares to wait for asynchronous events.
func (d *device) initialise() (err error) {
	d.ops = deref[cContext](d.context)
	a := new(cDeviceAttr)
	if errno := d.lib.invoke(queryDevice, d.context, uintptr(unsafe.Pointer(a))); errno != 0 {
		err = d.opError("query it", errno)
	} else {
		d.events, err = newWaiter(int(d.ops.asyncFD), d.name+" events")
	}
	if err != nil {
		_ = d.lib.invoke(closeDevice, d.context)
	}
	d.limits = verbs.Limits{
		Pairs: int(a.maxQP), PairRequests: int(a.maxQPWR), Elements: int(a.maxSGE),
		Queues: int(a.maxCQ), QueueDepth: int(a.maxCQE),
		Regions: int(a.maxMR), RegionBytes: a.maxMRSize,
		Ports: int(a.physPortCnt),
	}
	return err
}

func (d *device) Name() string { return d.name }

func (d *device) Limits() (verbs.Limits, error) { return d.limits, nil }

func (d *device) Port(number int) (verbs.Port, error) {
	if err := d.lockOpen(); err != nil {
		return verbs.Port{}, err
	}
	defer d.mu.Unlock()
	if number < 1 || number > d.limits.Ports {
		return verbs.Port{}, fmt.Errorf("%w: %s has ports 1 to %d, not %d", verbs.ErrLimit, d.name, d.limits.Ports, number)
	}
	a := new(cPortAttr)
	if errno := d.lib.invoke(queryPort, d.context, uintptr(number), uintptr(unsafe.Pointer(a))); errno != 0 {
		return verbs.Port{}, d.opError(fmt.Sprintf("query port %d", number), errno)
	}
	p := verbs.Port{
		State: verbs.PortState(a.state), Layer: d.linkLayer(number), LID: a.lid,
		MTU: mtuBytes(a.activeMTU), GIDs: int(a.gidTblLen),
	}
	if gid, err := d.gid(number, 0); err == nil {
		p.SubnetGUID = binary.BigEndian.Uint64(gid[:8])
	}
	return p, nil
}

// portAttribute reads a file of the port under /sys, which the library reads too.
func (d *device) portAttribute(port int, name ...string) string {
	dir := filepath.Join("/sys/class/infiniband", d.name, "ports", strconv.Itoa(port))
	b, _ := os.ReadFile(filepath.Join(append([]string{dir}, name...)...)) // fails for an empty GID entry
	return strings.TrimSpace(string(b))
}

func (d *device) linkLayer(port int) verbs.LinkLayer {
	switch d.portAttribute(port, "link_layer") {
	case "InfiniBand":
		return verbs.LayerInfiniBand
	case "Ethernet":
		return verbs.LayerEthernet
	}
	return verbs.LayerUnspecified
}

func (d *device) gid(port, index int) ([16]byte, error) {
	gid := new([16]byte)
	errno := d.lib.invoke(queryGID, d.context, uintptr(port), uintptr(index), uintptr(unsafe.Pointer(gid)))
	if errno != 0 {
		return *gid, d.opError(fmt.Sprintf("read GID %d of port %d", index, port), errno)
	}
	return *gid, nil
}

func (d *device) GID(port, index int) (verbs.GID, error) {
	if err := d.lockOpen(); err != nil {
		return verbs.GID{}, err
	}
	defer d.mu.Unlock()
	b, err := d.gid(port, index)
	if err != nil {
		return verbs.GID{}, err
	}
	g := verbs.GID{Addr: netip.AddrFrom16(b)}
	if b == [16]byte{} {
		return g, nil // an empty entry
	}
	switch kind := d.portAttribute(port, "gid_attrs", "types", strconv.Itoa(index)); {
	case kind == "RoCE v2":
		g.Kind = verbs.GIDRoCEv2
	case kind != "" && d.linkLayer(port) == verbs.LayerInfiniBand:
		g.Kind = verbs.GIDInfiniBand
	case kind == "IB/RoCE v1":
		g.Kind = verbs.GIDRoCEv1
	}
	return g, nil
}

func (d *device) NextEvent() (verbs.Event, error) {
	for {
		e, errno := d.takeEvent()
		switch {
		case errno == 0:
			return e, nil
		case errno == errnoClosed:
			return verbs.Event{}, net.ErrClosed
		case errno != syscall.EAGAIN && errno != syscall.EINTR:
			return verbs.Event{}, d.opError("take its events", errno)
		}
		if _, err := d.events.wait(); err != nil {
			return verbs.Event{}, err
		}
	}
}

func (d *device) Close() error {
	return d.closeOnce(d.name, func() error {
		d.events.close()
		return d.destroy("close it", closeDevice, d.context)
	})
}

// mtuBytes and mtuCode convert ibv_mtu, where 1 is 256 and 5 is 4096.
func mtuBytes(code int32) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

func mtuCode(n int) int32 {
	for code := int32(1); code <= 5; code++ {
		if mtuBytes(code) == n {
			return code
		}
	}
	return 0
}
