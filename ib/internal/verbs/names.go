package verbs

import "fmt"

// Error names the limit and the value needed.
func (e *LockLimitError) Error() string {
	return fmt.Sprintf("verbs: cannot pin %d bytes: the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l) is %d bytes; "+
		"raise it to at least %d KiB, or use fewer or smaller blocks", e.Want, e.Limit, (e.Want+1023)/1024)
}

func (t Transport) String() string { return name("transport", uint8(t), []string{RC: "RC", UC: "UC"}) }

func (s PairState) String() string {
	return name("state", uint8(s), []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"})
}

func (s PortState) String() string {
	return name("port state", uint8(s), []string{"", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"})
}

func (l LinkLayer) String() string {
	return name("link layer", uint8(l), []string{"unspecified", "InfiniBand", "Ethernet"})
}

func (s Status) String() string {
	return name("status", uint8(s), []string{
		StatusOK:              "success",
		StatusLocalLength:     "local length error",
		StatusLocalOperation:  "local QP operation error",
		StatusLocalProtection: "local protection error",
		StatusFlushed:         "flushed: the queue pair is in error",
		StatusRemoteInvalid:   "remote invalid request error",
		StatusRemoteAccess:    "remote access error: wrong key or bounds",
		StatusRemoteOperation: "remote operation error",
		StatusRetriesExceeded: "transport retry counter exceeded: the other end does not answer",
		StatusRNRExceeded:     "RNR retry counter exceeded: the other end has posted no receive",
		18:                    "fatal error",
	})
}

// name returns the name of a numbered value, or its kind and number.
func name(kind string, v uint8, names []string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s %d", kind, v)
}

// Check returns an error that names the first limit of a device that the configuration exceeds.
func (c *PairConfig) Check(l Limits) error {
	if c.Transport != RC && c.Transport != UC {
		return fmt.Errorf("%w: no queue pairs of %v", ErrAttributes, c.Transport)
	}
	for _, n := range []struct {
		what       string
		given, max int
	}{
		{"outstanding send requests", c.SendRequests, l.PairRequests},
		{"outstanding receive requests", c.ReceiveRequests, l.PairRequests},
		{"elements of a send", c.SendElements, l.Elements},
		{"elements of a receive", c.ReceiveElements, l.Elements},
	} {
		if n.given < 0 || n.given > n.max {
			return fmt.Errorf("%w: %d %s: a queue pair may have %d", ErrLimit, n.given, n.what, n.max)
		}
	}
	return nil
}
