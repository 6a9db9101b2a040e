package ib

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"
)

// Completion is how the link waits for what comes.
type Completion uint8

// Ways to wait.
const (
	// CompletionSpin looks for Config.Spin, then blocks: as the default.
	CompletionSpin Completion = iota
	// CompletionChannel blocks at the completion channel at once.
	CompletionChannel
	// CompletionPolling never blocks: it keeps a processor busy.
	CompletionPolling
)

// String is the word of the program's flag.
func (c Completion) String() string {
	switch c {
	case CompletionSpin:
		return "spin"
	case CompletionChannel:
		return "channel"
	case CompletionPolling:
		return "poll"
	}
	return "completion?"
}

// Defaults of Config.
const (
	DefaultBlocks     = 1000 // of each direction
	DefaultBlockBytes = 8128
	DefaultPeers      = 8
	defaultTimeout    = time.Second
	defaultSpin       = 20 * time.Microsecond
	defaultBuffers    = 64 << 20
)

// Bounds of Config.
const (
	maxBlocks     = 1 << 20
	minBlockBytes = 512
	maxBlockBytes = 64 << 20
	maxPeers      = 1024
	maxSlots      = 1 << 14
	maxNameBytes  = 255
	// fewestReceives a pair can do with, reserve among them.
	minReceives = 16
	// reserve is how many receives of a pair stay for credit that comes alone.
	controlReceives = 4
	// mostReceives keeps counters of 16 bits unambiguous.
	maxReceives = 1 << 14
)

const pageBytes = 4096

// headerRoom is what a frame may carry beside its message: headers of the session and
// of the channel, a trailer of protection.
const headerRoom = 256

// Config says which port a Link uses and what memory it registers. Name is required;
// the rest has defaults.
type Config struct {
	// Name is this peer's, as the others know it: Offer carries it.
	Name string
	// Device and Port name the adapter's port; "" and 0: the first active one.
	Device string
	Port   int
	// GID is 1 + the index of the entry of the port's table to use (Choice.GID.Index + 1); 0:
	// the best: RoCE v2 before v1, IPv4 before the rest.
	GID int
	// Fabric is a software fabric, for tests and runs within one process; nil: the
	// host's adapters, by libibverbs.
	Fabric *Fabric

	// Peers is how many connections there may be at once (default 8): the receive
	// blocks are shared out among them, half of a share to each queue pair.
	Peers int
	// SendBlocks and ReceiveBlocks of BlockBytes are registered once (defaults 1000,
	// 1000 and 8128). A block holds a frame.
	SendBlocks, ReceiveBlocks, BlockBytes int
	// MessageBytes, if it is not 0, is the largest message, and each goes in one work
	// request: blocks have this size and room for headers, BlockBytes is not used, and
	// there are fewer by default: 16 receives for each pair, 32 to send for each peer.
	MessageBytes int
	// WindowSlots, if it is not 0, is how many values each peer may keep in this end's
	// memory; frames of asynchronous values are then written there in place. Both
	// ends must have some, or such frames go as others do.
	WindowSlots int

	Completion Completion
	// Spin is how long CompletionSpin looks before it blocks (default 20 µs).
	Spin time.Duration
	// Timeout is about how long a peer may leave a frame unacknowledged before the
	// connection is down (default 1 s).
	Timeout time.Duration
	// BufferBytes bounds the memory of received frames that were copied out of their
	// blocks (default 64 MiB); past it frames stay in their blocks until released.
	BufferBytes int
	// Log is told what changes, one line each; it may be nil. It must not block.
	Log func(line string)
}

// withDefaults fills in what was left open and checks the rest.
func (c Config) withDefaults() (Config, error) {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.Peers, DefaultPeers)
	set(&c.BufferBytes, defaultBuffers)
	if c.MessageBytes > 0 {
		c.BlockBytes = (c.MessageBytes + headerRoom + 63) &^ 63
		set(&c.SendBlocks, 32*c.Peers)
		set(&c.ReceiveBlocks, 2*c.Peers*minReceives)
	}
	set(&c.SendBlocks, DefaultBlocks)
	set(&c.ReceiveBlocks, DefaultBlocks)
	set(&c.BlockBytes, DefaultBlockBytes)
	if c.Spin == 0 {
		c.Spin = defaultSpin
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c, c.check()
}

func (c *Config) check() error {
	share := c.receivesPerPair()
	switch {
	case c.Name == "" || len(c.Name) > maxNameBytes:
		return fmt.Errorf("ib: the name of this end must have 1 to %d bytes; %q has %d", maxNameBytes, c.Name, len(c.Name))
	case c.Peers < 1 || c.Peers > maxPeers:
		return fmt.Errorf("ib: %d peers: must be 1 to %d", c.Peers, maxPeers)
	case c.MessageBytes < 0 || c.BlockBytes < minBlockBytes || c.BlockBytes > maxBlockBytes:
		return fmt.Errorf("ib: blocks of %d bytes for messages of %d: must be %d to %d bytes", c.BlockBytes, c.MessageBytes, minBlockBytes, maxBlockBytes)
	case c.SendBlocks < minReceives || c.SendBlocks > maxBlocks || c.ReceiveBlocks > maxBlocks:
		return fmt.Errorf("ib: %d send and %d receive blocks: must be %d to %d", c.SendBlocks, c.ReceiveBlocks, minReceives, maxBlocks)
	case share < minReceives:
		return fmt.Errorf("ib: %d receive blocks leave %d for each of the two queue pairs of %d peers: at least %d are needed: %d blocks, or fewer peers",
			c.ReceiveBlocks, share, c.Peers, minReceives, 2*c.Peers*minReceives)
	case c.WindowSlots < 0 || c.WindowSlots > maxSlots:
		return fmt.Errorf("ib: %d window slots: must be 0 to %d", c.WindowSlots, maxSlots)
	case c.Port < 0 || c.Port > 255:
		return fmt.Errorf("ib: port %d: ports count from 1", c.Port)
	case c.GID < 0:
		return fmt.Errorf("ib: GID entry %d: 1 + an index, or 0", c.GID)
	case c.Completion > CompletionPolling:
		return fmt.Errorf("ib: unknown way to wait: %d", c.Completion)
	case c.Spin < 0 || c.Timeout < 0 || c.Timeout > time.Minute || c.BufferBytes < 0:
		return fmt.Errorf("ib: spin %v, time-out %v and %d bytes of buffers must not be negative, nor the time-out above a minute", c.Spin, c.Timeout, c.BufferBytes)
	}
	return nil
}

// share is how many receives each queue pair has.
func (c *Config) receivesPerPair() int { return min(c.ReceiveBlocks/(2*c.Peers), maxReceives) }

// window is how many frames a pair may have on their way.
func (c *Config) frameCredit() int { return c.receivesPerPair() - controlReceives }

// depth is how many send requests a pair may have outstanding: its window, credit that
// goes alone, and probes.
func (c *Config) sendDepth() int { return c.frameCredit() + 2*controlReceives }

// ring is how many send requests a pair keeps in mind: a power of two.
func (c *Config) sendRing() int { return 1 << bits.Len(uint(c.sendDepth())) }

// RegionBytes is how much memory Open would register for these settings, of which
// RLIMIT_MEMLOCK is the bound: blocks of both directions, and stamps. Each peer's window
// comes on top: see WindowBytes.
func (c Config) RegionBytes() (int64, error) {
	c.Name = cmp.Or(c.Name, "-")
	c, err := c.withDefaults()
	if err != nil {
		return 0, err
	}
	return int64(c.blockRegion()), nil
}

// WindowBytes is how much memory each peer's window takes.
func (c Config) WindowBytes() (int64, error) {
	c.Name = cmp.Or(c.Name, "-")
	c, err := c.withDefaults()
	if err != nil {
		return 0, err
	}
	return int64(c.windowRegion()), nil
}

func (c *Config) blockRegion() int {
	n := (c.SendBlocks+c.ReceiveBlocks)*c.BlockBytes + patternBytes
	if c.WindowSlots > 0 {
		n += 2 * c.Peers * c.sendRing() * stampBytes(c.BlockBytes)
	}
	return pages(n)
}

// pages rounds up to what is pinned.
func pages(n int) int { return (n + pageBytes - 1) &^ (pageBytes - 1) }

func (c *Config) windowRegion() int {
	if c.WindowSlots == 0 {
		return 0
	}
	return pages(windowHead + c.WindowSlots*slotBytes(c.BlockBytes) + windowTail)
}
