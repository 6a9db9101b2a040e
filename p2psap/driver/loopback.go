package driver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Loopback returns the loopback address at which processes of this host reach each other: 127.0.0.1, or ::1 if that is the
// only one. Its error says what is missing.
func Loopback() (string, error) {
	interfaces, err := net.Interfaces()
	if err == nil {
		var loopbacks []net.Interface
		for _, i := range interfaces {
			if i.Flags&net.FlagLoopback != 0 {
				loopbacks = append(loopbacks, i)
			}
		}
		down := func(i net.Interface) bool { return i.Flags&net.FlagUp == 0 }
		if len(loopbacks) > 0 && !slices.ContainsFunc(loopbacks, func(i net.Interface) bool { return !down(i) }) {
			name := loopbacks[0].Name
			return "", fmt.Errorf("the loopback interface %s is down, over which processes of one host reach each other: "+
				"ip link set %s up", name, name)
		}
	}
	var wrong []string
	for _, address := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err == nil {
			return address, l.Close()
		}
		wrong = append(wrong, err.Error())
	}
	return "", errors.New("processes of one host cannot reach each other over loopback: " + strings.Join(wrong, "; "))
}
