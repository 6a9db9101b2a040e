package shm

import (
	"cmp"
	"fmt"
	"math/bits"
)

// Defaults of Config.
const (
	DefaultFrameBytes = 64<<10 + 512 // 64 KiB of payload with its headers
	DefaultValues     = 8
	defaultLaneBytes  = 512 << 10
	defaultBuffers    = 64 << 20
)

// Bounds of Config.
const (
	minFrameBytes = 512
	maxFrameBytes = 16 << 20
	maxValues     = 1 << 12
	maxLaneBytes  = 256 << 20
	maxNameBytes  = 255
	maxOutbox     = 1 << 30
)

// Config sets a Link up. Only Name is required. The two ends of a connection need the same sizes.
type Config struct {
	// Name is this peer's name; Offer carries it to the other end.
	Name string
	// Group sets links apart: those of different groups refuse each other.
	Group string
	// Memory, if not nil, joins links of this process over a heap block, without a system call.
	Memory *Memory
	// FrameBytes is the size of the largest frame of a synchronous session (default 64.5 KiB). While one
	// frame of a message is read, the next is written.
	FrameBytes int
	// ValueBytes is the size of the largest frame of an asynchronous session (default FrameBytes). A frame
	// is replaced as a whole.
	ValueBytes int
	// Values is the number of asynchronous frames for which each connection has a slot (default 8;
	// negative: none). Others share the lane, where they are dropped when it is full.
	Values int
	// LaneBytes is the size of a lane (default 512 KiB, or what four frames of a synchronous session or two of an
	// asynchronous one need), rounded up to a power of two. Beside it a connection has 32 blocks of FrameBytes.
	LaneBytes int
	// BufferBytes bounds the memory of received frames (default 64 MiB). Beyond it frames stay in their
	// lanes until others are released.
	BufferBytes int
	// Log, if not nil, receives a line for every change of state. It must not block.
	Log func(line string)
}

// withDefaults returns c with defaults filled in, and an error if c is invalid.
func (c Config) withDefaults() (Config, error) {
	c.FrameBytes = cmp.Or(c.FrameBytes, DefaultFrameBytes)
	c.ValueBytes = cmp.Or(c.ValueBytes, c.FrameBytes)
	c.Values = max(cmp.Or(c.Values, DefaultValues), 0)
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBuffers)
	least := max(4*c.FrameBytes, 2*c.ValueBytes+lineBytes*(c.Values+4), 8*lineBytes*(c.Values+2))
	c.LaneBytes = powerOfTwo(max(cmp.Or(c.LaneBytes, defaultLaneBytes), least))
	return c, c.check()
}

func powerOfTwo(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

func (c *Config) check() error {
	switch {
	case c.Name == "" || len(c.Name) > maxNameBytes:
		return fmt.Errorf("shm: the name of this end must have 1 to %d bytes; %q has %d", maxNameBytes, c.Name, len(c.Name))
	case len(c.Group) > maxNameBytes:
		return fmt.Errorf("shm: the group %q has %d bytes: must be at most %d", c.Group, len(c.Group), maxNameBytes)
	case c.FrameBytes < minFrameBytes || c.FrameBytes > maxFrameBytes,
		c.ValueBytes < minFrameBytes || c.ValueBytes > maxFrameBytes:
		return fmt.Errorf("shm: frames of %d and values of %d bytes: must be %d to %d",
			c.FrameBytes, c.ValueBytes, minFrameBytes, maxFrameBytes)
	case c.Values > maxValues:
		return fmt.Errorf("shm: %d values: must be at most %d", c.Values, maxValues)
	case c.LaneBytes > maxLaneBytes:
		return fmt.Errorf("shm: a lane of %d bytes: must be at most %d", c.LaneBytes, maxLaneBytes)
	case newLayout(c.sizes()).total > maxOutbox:
		return fmt.Errorf("shm: %v need %d bytes for each connection: must be at most %d",
			c.sizes(), newLayout(c.sizes()).total, maxOutbox)
	case c.BufferBytes < 0:
		return fmt.Errorf("shm: %d bytes of buffers: must not be negative", c.BufferBytes)
	}
	return nil
}

func (c *Config) sizes() sizes {
	return sizes{uint32(c.FrameBytes), uint32(c.ValueBytes), uint32(c.Values), uint32(c.LaneBytes)}
}

// OutboxBytes returns the size of the memory that each end has for each connection.
func (c Config) OutboxBytes() (int64, error) {
	c.Name = cmp.Or(c.Name, "-")
	c, err := c.withDefaults()
	if err != nil {
		return 0, err
	}
	return int64(newLayout(c.sizes()).total), nil
}
