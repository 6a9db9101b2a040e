package stream

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Defaults of Config.
const (
	DefaultFrameBytes = 64<<10 + 2*microproto.MaxHeaderBytes // a message of 64 KiB is one frame
	defaultBuffers    = 256 << 20
	defaultTimeout    = 5 * time.Second
	defaultCongestion = "reno"
)

// Bounds of Config.
const (
	minFrameBytes = 512
	maxFrameBytes = 1 << 20
	maxNameBytes  = 255
)

// Config sets a Link up. Only Name is required.
type Config struct {
	// Name is this peer's name; Offer carries it to the other end.
	Name string
	// Group sets links apart: those of different groups refuse each other.
	Group string
	// Listen is a name or address of this host. "" and the unspecified addresses stand for all addresses.
	Listen string
	// PortLow to PortHigh are the ports to try, in order. With 0 the kernel chooses.
	PortLow, PortHigh int
	// ListenLate has the link listen when it makes its first offer: a link that only stands by needs no port.
	ListenLate bool
	// FrameBytes is the size of the largest frame (default: a message of 64 KiB with its headers). The two ends need
	// the same.
	FrameBytes int
	// BufferBytes bounds the memory of received frames (default 256 MiB). Beyond it the link stops reading until
	// others are released.
	BufferBytes int
	// Timeout bounds how long sent bytes may stay unacknowledged (default 5 s), and how long the two ends take to meet, if it
	// is shorter than 2 s: their peers wait for that.
	Timeout time.Duration
	// Congestion is the congestion control of the kernel (default reno). The kernel's own default is used where the
	// system does not offer it.
	Congestion string
	// Log, if not nil, receives a line for every change of state. It must not block.
	Log func(line string)
}

// meetTime bounds how long the two ends take to meet.
func (c *Config) meetTime() time.Duration { return min(c.Timeout, 2*time.Second) }

// withDefaults returns c with defaults filled in, and an error if c is invalid.
func (c Config) withDefaults() (Config, error) {
	c.FrameBytes = cmp.Or(c.FrameBytes, DefaultFrameBytes)
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBuffers)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Congestion = cmp.Or(c.Congestion, defaultCongestion)
	switch {
	case c.Name == "" || len(c.Name) > maxNameBytes:
		return c, fmt.Errorf("stream: the name of this end must have 1 to %d bytes; %q has %d", maxNameBytes, c.Name,
			len(c.Name))
	case len(c.Group) > maxNameBytes:
		return c, fmt.Errorf("stream: the group %q has %d bytes: must be at most %d", c.Group, len(c.Group), maxNameBytes)
	case c.FrameBytes < minFrameBytes || c.FrameBytes > maxFrameBytes:
		return c, fmt.Errorf("stream: frames of %d bytes: must be %d to %d", c.FrameBytes, minFrameBytes, maxFrameBytes)
	case c.PortLow < 0 || c.PortHigh > 65535 || c.PortLow > c.PortHigh:
		return c, fmt.Errorf("stream: port range %d-%d: must be LOW-HIGH within 1-65535 (--port-range)",
			c.PortLow, c.PortHigh)
	case c.BufferBytes < 0 || c.Timeout < 0:
		return c, fmt.Errorf("stream: %d bytes of buffers, a time-out of %v: must not be negative", c.BufferBytes, c.Timeout)
	}
	return c, nil
}

// listen binds the first free port of the range.
func (c *Config) listen() (l net.Listener, err error) {
	for port := c.PortLow; port <= c.PortHigh; port++ {
		l, err = net.Listen("tcp", net.JoinHostPort(c.Listen, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("stream: cannot listen: %w (--listen, --port-range)", err)
}
