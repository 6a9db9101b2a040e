// Package verbs is the part of the InfiniBand verbs (InfiniBand Architecture
// Specification, volume 1, chapter 11) that the link of package ib needs, as an
// interface with two providers: libibverbs, loaded at run time, and a software adapter
// in pure Go that obeys the same rules. One suite tests both.
package verbs

import (
	"errors"
	"net/netip"
)

// Provider finds and opens devices. Except where stated, all methods of a provider and of the
// objects made from it may be called from several goroutines at once.
type Provider interface {
	// Name returns "libibverbs" or "software".
	Name() string
	// Devices returns the names of the devices, if any. The error tells why they cannot be
	// listed (ErrNoLibrary, ErrNoKernel) and what to install.
	Devices() ([]string, error)
	// Open opens a device by name.
	Open(name string) (Device, error)
}

// Device is an open adapter. Close fails with ErrBusy while an object made from it is open.
type Device interface {
	Name() string
	Limits() (Limits, error)
	// Port returns the attributes of a port, numbered from 1.
	Port(number int) (Port, error)
	// GID returns an entry of a port's GID table.
	GID(port, index int) (GID, error)
	AllocDomain() (Domain, error)
	// CreateChannel creates a completion channel.
	CreateChannel() (Channel, error)
	// CreateQueue creates a completion queue for at least depth completions. With a channel
	// that is not nil, the queue raises events there when armed.
	CreateQueue(depth int, c Channel) (CompletionQueue, error)
	// NextEvent waits for an event of the device or its ports (IBTA 11.6.3). It returns
	// net.ErrClosed once the device is closed.
	NextEvent() (Event, error)
	Close() error
}

// Limits are the limits of a device (ibv_query_device).
type Limits struct {
	Pairs, PairRequests int // queue pairs; outstanding work requests per queue of a pair
	Elements            int // scatter and gather elements of a work request
	Queues, QueueDepth  int // completion queues; completions per queue
	Regions             int
	RegionBytes         uint64
	Ports               int
}

// PortState is the state of a port's logical link (IBTA 7.2.7).
type PortState uint8

// The port states that matter, numbered as in ibv_port_state.
const (
	PortDown   PortState = 1
	PortActive PortState = 4
)

// LinkLayer is the link layer of a port.
type LinkLayer uint8

// Link layers, numbered as in libibverbs.
const (
	LayerUnspecified LinkLayer = iota
	LayerInfiniBand
	LayerEthernet // RoCE
)

// Port is a port's attributes.
type Port struct {
	State      PortState
	Layer      LinkLayer
	LID        uint16 // InfiniBand only; 0 elsewhere
	MTU        int    // active path MTU, bytes: 256 to 4096
	GIDs       int    // length of the GID table
	SubnetGUID uint64 // prefix of GID 0: equal on one subnet
}

// GID is a global identifier, laid out as an IPv6 address.
type GID struct {
	Addr netip.Addr
	Kind GIDKind
}

// GIDKind is the kind of frames that use a GID.
type GIDKind uint8

// Kinds of GIDs.
const (
	GIDUnknown GIDKind = iota
	GIDInfiniBand
	GIDRoCEv1
	GIDRoCEv2
)

// Access is a set of rights to a region or through a pair. Local reads are always allowed.
type Access uint32

// Access flags, as in ibv_access_flags.
const (
	LocalWrite  Access = 1 << 0
	RemoteWrite Access = 1 << 1
	RemoteRead  Access = 1 << 2
)

// Domain is a protection domain. Close fails with ErrBusy while it has regions or pairs.
type Domain interface {
	// Register pins b and gives it keys. b must come from Allocate and stay mapped until the
	// region is closed. The error is a *LockLimitError if RLIMIT_MEMLOCK is too small.
	Register(b []byte, a Access) (Region, error)
	CreatePair(c PairConfig) (Pair, error)
	Close() error
}

// Region is registered memory. Close invalidates its keys.
type Region interface {
	Addr() uint64 // address of its first byte in remote writes
	LocalKey() uint32
	RemoteKey() uint32
	Close() error
}

// Transport is the transport service of a pair.
type Transport uint8

// Reliable and unreliable connected, numbered as in ibv_qp_type.
const (
	RC Transport = 2
	UC Transport = 3
)

// PairConfig configures a queue pair. The error for what a device cannot do names the limit.
type PairConfig struct {
	Transport                     Transport
	Send, Receive                 CompletionQueue // may be the same
	SendRequests                  int             // outstanding
	ReceiveRequests               int
	SendElements, ReceiveElements int
}

// PairState is the state of a queue pair (IBTA 10.3.1).
type PairState uint8

// States, numbered as in ibv_qp_state.
const (
	Reset PairState = iota
	Init
	ReadyToReceive
	ReadyToSend
	_ // the send queue is drained
	_ // the send queue is in error
	Error
)

// Attributes are the attributes of a queue pair that a transition changes. Mask selects them.
type Attributes struct {
	Mask           Mask
	State          PairState
	Port           int
	Access         Access
	PathMTU        int    // bytes
	Remote         uint32 // queue pair number
	ReceivePSN     uint32 // first packet number expected, 24 bits
	SendPSN        uint32
	Path           Path
	PendingReads   uint8 // as responder
	InitiatedReads uint8
	RNRTimer       uint8 // code of IBTA table 45
	Timeout        uint8 // 4.096 µs × 2^Timeout
	Retries        uint8 // 0–7
	RNRRetries     uint8 // 0–7; 7: unlimited
}

// Path is the path to the other end's port.
type Path struct {
	LID         uint16
	Global      bool // Destination, SourceIndex and HopLimit are used
	Destination netip.Addr
	SourceIndex int // of the GID table
	HopLimit    uint8
}

// Mask is a set of attributes.
type Mask uint32

// Attributes, as in ibv_qp_attr_mask.
const (
	MaskState          Mask = 1 << 0
	MaskAccess         Mask = 1 << 3
	MaskPartitionKey   Mask = 1 << 4
	MaskPort           Mask = 1 << 5
	MaskPath           Mask = 1 << 7
	MaskPathMTU        Mask = 1 << 8
	MaskTimeout        Mask = 1 << 9
	MaskRetries        Mask = 1 << 10
	MaskRNRRetries     Mask = 1 << 11
	MaskReceivePSN     Mask = 1 << 12
	MaskInitiatedReads Mask = 1 << 13
	MaskRNRTimer       Mask = 1 << 15
	MaskSendPSN        Mask = 1 << 16
	MaskPendingReads   Mask = 1 << 17
	MaskRemote         Mask = 1 << 20
)

// Pair is a queue pair. Requests complete in the order posted. After an error the pair is in
// Error, and all outstanding requests complete with StatusFlushed.
type Pair interface {
	Number() uint32 // 24 bits
	State() (PairState, error)
	// Modify changes attributes. A transition needs exactly the attributes that IBTA table 91
	// (and ibv_modify_qp) list for it and the transport. The error otherwise wraps
	// ErrAttributes and names them.
	Modify(a Attributes) error
	// PostSend posts a prefix of requests. It returns the number posted, and why the next one
	// was refused (ErrQueueFull, ErrState, …). Requests and their elements may be reused at
	// once, but the memory that elements name only after the request has completed.
	PostSend(requests []SendRequest) (n int, err error)
	PostReceive(requests []ReceiveRequest) (n int, err error)
	Close() error
}

// Operation is the operation of a send request.
type Operation uint8

// Operations, numbered as in ibv_wr_opcode.
const (
	Write Operation = iota
	WriteImmediate
	Send
	SendImmediate
)

// Element is a piece of registered memory.
type Element struct {
	Addr   uint64
	Length uint32
	Key    uint32 // local
}

// SendRequest is a work request for the send queue. A request that is not Signaled leaves a
// completion only if it fails. A completion implies that all earlier requests are done.
type SendRequest struct {
	ID         uint64
	Operation  Operation
	Elements   []Element
	Signaled   bool
	Immediate  uint32
	RemoteAddr uint64 // of writes
	RemoteKey  uint32
}

// ReceiveRequest is a work request for the receive queue.
type ReceiveRequest struct {
	ID       uint64
	Elements []Element
}

// CompletionQueue holds completions until they are polled.
type CompletionQueue interface {
	// Poll takes up to len(dst) completions and never blocks.
	Poll(dst []Completion) (int, error)
	// Arm requests one event on the channel at the next completion. Earlier completions raise
	// none: poll again after it.
	Arm() error
	Close() error
}

// Channel reports completions of armed queues. One goroutine at a time may use it.
type Channel interface {
	// Wait blocks until an armed queue of this channel has raised an event, and takes all
	// pending events. It returns false after Wake, and net.ErrClosed after Close.
	Wait() (bool, error)
	// Wake makes the waiting Wait, or else the next one, return false. It may be called from
	// any goroutine.
	Wake()
	Close() error
}

// Status is the result of a work request, numbered as in ibv_wc_status.
type Status uint8

// Statuses.
const (
	StatusOK              Status = 0
	StatusLocalLength     Status = 1
	StatusLocalOperation  Status = 2
	StatusLocalProtection Status = 4
	StatusFlushed         Status = 5
	StatusRemoteInvalid   Status = 9
	StatusRemoteAccess    Status = 10
	StatusRemoteOperation Status = 11
	StatusRetriesExceeded Status = 12
	StatusRNRExceeded     Status = 13
)

// CompletionKind is the kind of a completed request.
type CompletionKind uint8

// Kinds.
const (
	Sent CompletionKind = iota + 1
	Written
	Received          // by a receive request
	ReceivedImmediate // a write with immediate consumed a receive request
)

// Completion reports the end of a work request. If the request failed, only ID, Status and
// Pair are valid.
type Completion struct {
	ID           uint64
	Status       Status
	Kind         CompletionKind
	HasImmediate bool
	Immediate    uint32
	Bytes        uint32 // received
	Pair         uint32 // number
}

// Event is an asynchronous event of a device.
type Event struct {
	Kind EventKind
	Port int    // of port events
	Pair uint32 // number, of pair events
}

// EventKind is a kind of asynchronous event.
type EventKind uint8

// Kinds of events. EventOther stands for all others.
const (
	EventOther EventKind = iota
	EventPortActive
	EventPortError
	EventDeviceFatal // removed or broken
	EventPairFatal
)

// Errors of providers. Returned errors wrap them and name the object and the reason.
var (
	ErrNoLibrary  = errors.New("verbs: libibverbs is not available")
	ErrNoKernel   = errors.New("verbs: the kernel has no RDMA")
	ErrNoDevice   = errors.New("verbs: no such device")
	ErrGone       = errors.New("verbs: the device was removed")
	ErrBusy       = errors.New("verbs: in use")
	ErrQueueFull  = errors.New("verbs: the queue has no room for another work request")
	ErrState      = errors.New("verbs: not allowed in this state of the queue pair")
	ErrAttributes = errors.New("verbs: wrong attributes for this transition")
	ErrLimit      = errors.New("verbs: beyond the limits of the device")
)

// LockLimitError reports that memory could not be pinned.
type LockLimitError struct {
	Want  int64 // bytes
	Limit int64 // RLIMIT_MEMLOCK, bytes
}
