package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// token proves to the other end that this one has read its offer.
type token [32]byte

// offer describes one end to the other. Its encoding is the fields, big endian, then the name of the
// offering end, its group and the address of its socket, each behind a byte with its length.
type offer struct {
	offerFields
	name   string
	group  string
	socket string // abstract; empty: the end is reached within its process only
}

type offerFields struct {
	Version     uint8
	Host        hostIdentity
	User        uint32
	Sizes       sizes
	Incarnation uint64 // of the link, random
	Token       token
}

// hostIdentity identifies a boot of a host and a network namespace, in which abstract sockets live.
type hostIdentity struct {
	Boot      [36]byte
	Namespace [2]uint64 // device and inode
}

var (
	errOffer   = errors.New("shm: malformed offer")
	offerFixed = binary.Size(offerFields{})
)

// Reasons for which Accept refuses an offer.
var (
	ErrHost    = errors.New("shm: the two ends are not on one host")
	ErrProcess = errors.New("shm: the two ends are not joined by memory of one process")
	ErrUser    = errors.New("shm: the two ends belong to different users")
	ErrGroup   = errors.New("shm: the two ends are in different groups")
)

func (o *offer) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.BigEndian, &o.offerFields) // fails only for types of variable size
	for _, text := range []string{o.name, o.group, o.socket} {
		b = append(append(b, byte(len(text))), text...)
	}
	return b
}

// decodeOffer decodes an offer from an untrusted source.
func decodeOffer(b []byte) (o offer, err error) {
	if len(b) > 0 && b[0] != layoutVersion {
		return o, fmt.Errorf("shm: the offer has version %d, this end needs %d: run the same program version at both ends",
			b[0], layoutVersion)
	}
	if _, err := binary.Decode(b, binary.BigEndian, &o.offerFields); err != nil {
		return o, fmt.Errorf("%w: %d bytes", errOffer, len(b))
	}
	rest, named := b[offerFixed:], false
	if o.name, rest, named = cutText(rest); !named || o.name == "" {
		return o, fmt.Errorf("%w: it has no name", errOffer)
	}
	if o.group, rest, named = cutText(rest); !named {
		return o, fmt.Errorf("%w: it has no group", errOffer)
	}
	if o.socket, rest, named = cutText(rest); !named || len(rest) > 0 || len(o.socket) > maxSocketBytes {
		return o, fmt.Errorf("%w: it has no socket", errOffer)
	}
	return o, nil
}

// maxSocketBytes is below the size of sockaddr_un.
const maxSocketBytes = 100

// cutText cuts a text off that stands behind its length.
func cutText(b []byte) (text string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", b, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

// compatible returns nil if two ends can be connected, or the reason why not.
func (o *offer) compatible(their *offer) error {
	switch {
	case (their.socket == "") != (o.socket == "") || o.socket == "" && their.Host != o.Host:
		return fmt.Errorf("%w: %q runs in another one", ErrProcess, their.name)
	case their.Host.Boot != o.Host.Boot:
		return fmt.Errorf("%w: %q runs on another one", ErrHost, their.name)
	case their.Host.Namespace != o.Host.Namespace:
		return fmt.Errorf("%w: %q is in another network namespace, such as that of another container", ErrHost, their.name)
	case their.User != o.User:
		return fmt.Errorf("%w: this end has the user number %d, %q has %d", ErrUser, o.User, their.name, their.User)
	case their.group != o.group:
		return fmt.Errorf("%w: this end in %q, %q in %q", ErrGroup, o.group, their.name, their.group)
	case their.name == o.name:
		return fmt.Errorf("shm: peer %q has the same name as this end: give them different names", their.name)
	case their.Sizes != o.Sizes:
		return fmt.Errorf("shm: %q has %v, this end %v: use the same sizes at both ends", their.name, their.Sizes, o.Sizes)
	}
	return nil
}

func (s sizes) String() string {
	return fmt.Sprintf("frames of %d bytes, %d values of %d bytes and lanes of %d bytes",
		s.FrameBytes, s.Values, s.ValueBytes, s.LaneBytes)
}
