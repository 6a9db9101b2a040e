package ib

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"
)

// Completion is the way in which Recv waits for frames.
type Completion uint8

// Ways to wait.
const (
	// CompletionSpin polls for Config.Spin, then blocks. It is the default.
	CompletionSpin Completion = iota
	// CompletionChannel blocks at the completion channel at once.
	CompletionChannel
	// CompletionPolling never blocks: it keeps a processor busy.
	CompletionPolling
)

// String returns the value of the program's flag.
func (c Completion) String() string {
	if names := [...]string{"spin", "channel", "poll"}; int(c) < len(names) {
		return names[c]
	}
	return "completion?"
}

// Defaults of Config.
const (
	DefaultBlocks     = 1000 // per direction
	DefaultBlockBytes = 8128
	DefaultPeers      = 8
	defaultTimeout    = time.Second
	defaultSpin       = 20 * time.Microsecond
	defaultBuffers    = 64 << 20 // bytes
)

// Bounds of Config.
const (
	maxBlocks     = 1 << 20
	minBlockBytes = 512
	maxBlockBytes = 64 << 20
	maxPeers      = 1024
	maxSlots      = 1 << 14
	maxNameBytes  = 255
	// minReceives is the smallest number of receives of a pair, controlReceives included.
	minReceives = 16
	// controlReceives is the number of receives of a pair reserved for credit without a frame.
	controlReceives = 4
	// maxReceives keeps 16-bit counters unambiguous.
	maxReceives = 1 << 14
)

const pageBytes = 4096

// headerRoom is the room in a frame beside its message, in bytes: headers of the session and
// of the channel, and the trailer of protection.
const headerRoom = 256

// Config selects the port of a Link and the memory that it registers. Only Name is required.
type Config struct {
	// Name is this peer's name; Offer carries it to the other end.
	Name string
	// Device and Port name the adapter's port; "" and 0 select the first active one.
	Device string
	Port   int
	// GID is 1 + the index in the port's GID table (Choice.GID.Index + 1). 0 selects the
	// best entry: RoCE v2 before v1, IPv4 before others.
	GID int
	// Fabric, if not nil, is a software fabric for tests and runs within one process. The
	// default is libibverbs with the host's adapters.
	Fabric *Fabric

	// Peers bounds the number of connections (default 8). Their queue pairs share the receive
	// blocks equally.
	Peers int
	// SendBlocks and ReceiveBlocks are the numbers of registered blocks (default 1000 each)
	// of BlockBytes (default 8128). A block holds a frame.
	SendBlocks, ReceiveBlocks, BlockBytes int
	// MessageBytes, if not 0, is the size of the largest message, and each message is one work
	// request. Blocks then have this size plus room for headers, BlockBytes is ignored, and
	// the defaults are 16 receive blocks per pair and 32 send blocks per peer.
	MessageBytes int
	// WindowSlots, if not 0, is the number of asynchronous values for which each peer has a
	// slot in this end's memory. The peer writes frames of these values in place if both ends
	// have slots, and sends them otherwise.
	WindowSlots int

	Completion Completion
	// Spin is the time for which CompletionSpin polls before it blocks (default 20 µs).
	Spin time.Duration
	// Timeout is the approximate time after which an unacknowledged frame takes the
	// connection down (default 1 s).
	Timeout time.Duration
	// BufferBytes bounds the memory of received frames that were copied out of their blocks
	// (default 64 MiB). Beyond it frames occupy their blocks until released.
	BufferBytes int
	// Log, if not nil, receives a line for every change of state. It must not block.
	Log func(line string)
}

// withDefaults returns c with defaults filled in, and an error if c is invalid.
func (c Config) withDefaults() (Config, error) {
	c.Peers = cmp.Or(c.Peers, DefaultPeers)
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBuffers)
	if c.MessageBytes > 0 {
		c.BlockBytes = (c.MessageBytes + headerRoom + 63) &^ 63
		c.SendBlocks = cmp.Or(c.SendBlocks, 32*c.Peers)
		c.ReceiveBlocks = cmp.Or(c.ReceiveBlocks, 2*c.Peers*minReceives)
	}
	c.SendBlocks = cmp.Or(c.SendBlocks, DefaultBlocks)
	c.ReceiveBlocks = cmp.Or(c.ReceiveBlocks, DefaultBlocks)
	c.BlockBytes = cmp.Or(c.BlockBytes, DefaultBlockBytes)
	c.Spin = cmp.Or(c.Spin, defaultSpin)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	return c, c.check()
}

func (c *Config) check() error {
	switch {
	case c.Name == "" || len(c.Name) > maxNameBytes:
		return fmt.Errorf("ib: the name of this end must have 1 to %d bytes; %q has %d", maxNameBytes, c.Name, len(c.Name))
	case c.Peers < 1 || c.Peers > maxPeers:
		return fmt.Errorf("ib: %d peers: must be 1 to %d", c.Peers, maxPeers)
	case c.MessageBytes < 0 || c.BlockBytes < minBlockBytes || c.BlockBytes > maxBlockBytes:
		return fmt.Errorf("ib: blocks of %d bytes for messages of %d: must be %d to %d bytes",
			c.BlockBytes, c.MessageBytes, minBlockBytes, maxBlockBytes)
	case c.SendBlocks < minReceives || c.SendBlocks > maxBlocks || c.ReceiveBlocks > maxBlocks:
		return fmt.Errorf("ib: %d send and %d receive blocks: must be %d to %d",
			c.SendBlocks, c.ReceiveBlocks, minReceives, maxBlocks)
	case c.receivesPerPair() < minReceives:
		return fmt.Errorf("ib: %d receive blocks leave %d for each of the two queue pairs of %d peers, which need %d: "+
			"register %d receive blocks, or allow fewer peers",
			c.ReceiveBlocks, c.receivesPerPair(), c.Peers, minReceives, 2*c.Peers*minReceives)
	case c.WindowSlots < 0 || c.WindowSlots > maxSlots:
		return fmt.Errorf("ib: %d window slots: must be 0 to %d", c.WindowSlots, maxSlots)
	case c.Port < 0 || c.Port > 255:
		return fmt.Errorf("ib: port %d: must be 1 to 255, or 0 for the first active port", c.Port)
	case c.GID < 0:
		return fmt.Errorf("ib: GID entry %d: must be 1 + an index, or 0 for the best entry", c.GID)
	case c.Completion > CompletionPolling:
		return fmt.Errorf("ib: unknown way to wait for completions: %d", c.Completion)
	case c.Spin < 0 || c.Timeout < 0 || c.Timeout > time.Minute || c.BufferBytes < 0:
		return fmt.Errorf("ib: spin %v, time-out %v and %d bytes of buffers must not be negative, "+
			"nor the time-out above a minute", c.Spin, c.Timeout, c.BufferBytes)
	}
	return nil
}

// receivesPerPair returns the number of receives of each queue pair.
func (c *Config) receivesPerPair() int { return min(c.ReceiveBlocks/(2*c.Peers), maxReceives) }

// frameCredit returns the number of frames that a pair may have in flight.
func (c *Config) frameCredit() int { return c.receivesPerPair() - controlReceives }

// sendDepth returns the number of send requests that a pair may have outstanding: frames,
// credit without a frame, and probes.
func (c *Config) sendDepth() int { return c.frameCredit() + 2*controlReceives }

// sendRing returns the length of a pair's ring of send requests, a power of two.
func (c *Config) sendRing() int { return 1 << bits.Len(uint(c.sendDepth())) }

// RegionBytes returns the size of the memory that Open registers, which RLIMIT_MEMLOCK
// bounds: blocks of both directions, and stamps. Each peer's window adds WindowBytes.
func (c Config) RegionBytes() (int64, error) { return c.size((*Config).blockRegion) }

// WindowBytes returns the size of each peer's window.
func (c Config) WindowBytes() (int64, error) { return c.size((*Config).windowRegion) }

func (c Config) size(f func(*Config) int) (int64, error) {
	c.Name = cmp.Or(c.Name, "-")
	c, err := c.withDefaults()
	if err != nil {
		return 0, err
	}
	return int64(f(&c)), nil
}

func (c *Config) blockRegion() int {
	n := (c.SendBlocks+c.ReceiveBlocks)*c.BlockBytes + patternBytes
	if c.WindowSlots > 0 {
		n += 2 * c.Peers * c.sendRing() * stampBytes(c.BlockBytes)
	}
	return pages(n)
}

func (c *Config) windowRegion() int {
	if c.WindowSlots == 0 {
		return 0
	}
	return pages(windowHead + c.WindowSlots*slotBytes(c.BlockBytes) + windowTail)
}

// pages rounds up to whole pages, the unit of pinning.
func pages(n int) int { return (n + pageBytes - 1) &^ (pageBytes - 1) }
