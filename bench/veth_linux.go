package main

import (
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
)

// vethHosts makes two hosts joined by Ethernet of MTU 1500.
func vethHosts() (h hosts, err error) {
	remove, err := measure.OpenLab(func(r netlab.Reporter) error {
		lab := netlab.New(r)
		a, b := lab.Host("called"), lab.Host("caller")
		x, y := lab.Join(a, b, netlab.Wire{})
		h = hosts{
			name: "veth, MTU 1500", address: [2]string{x.IPv4.String(), y.IPv4.String()},
			start: [2]func(func() error) error{a.Do, b.Do},
		}
		return nil
	})
	if err != nil {
		remove()
	}
	h.close = remove
	return h, err
}
