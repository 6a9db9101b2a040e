package verbs

import "fmt"

// Error implements error: it names the limit and the value needed.
func (e *LockLimitError) Error() string {
	return fmt.Sprintf("verbs: cannot pin %d bytes: the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l) is %d bytes; raise it to at least %d KiB, or ask for fewer or smaller blocks",
		e.Want, e.Limit, (e.Want+1023)/1024)
}

func (t Transport) String() string {
	switch t {
	case RC:
		return "RC"
	case UC:
		return "UC"
	}
	return fmt.Sprintf("transport %d", uint8(t))
}

func (s PairState) String() string {
	names := [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

func (s PortState) String() string {
	names := [...]string{"", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	if s > 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("port state %d", uint8(s))
}

func (l LinkLayer) String() string {
	switch l {
	case LayerInfiniBand:
		return "InfiniBand"
	case LayerEthernet:
		return "Ethernet"
	}
	return "unspecified"
}

func (s Status) String() string {
	switch s {
	case StatusOK:
		return "success"
	case StatusLocalLength:
		return "local length error"
	case StatusLocalOperation:
		return "local QP operation error"
	case StatusLocalProtection:
		return "local protection error"
	case StatusFlushed:
		return "flushed: the queue pair is in error"
	case StatusRemoteInvalid:
		return "remote invalid request error"
	case StatusRemoteAccess:
		return "remote access error: wrong key or bounds"
	case StatusRemoteOperation:
		return "remote operation error"
	case StatusRetriesExceeded:
		return "transport retry counter exceeded: the other end does not answer"
	case StatusRNRExceeded:
		return "RNR retry counter exceeded: the other end has posted no receive"
	case StatusFatal:
		return "fatal error"
	}
	return fmt.Sprintf("status %d", uint8(s))
}
