package cluster

import (
	"fmt"
	"slices"
	"time"
)

func (n *Network) check(key string) error {
	least, most := minEtherMTU, maxEtherMTU
	switch n.Kind {
	case Ether:
	case IB:
		least, most = minIBMTU, 1<<30
	default:
		return &Error{key + ".kind", fmt.Sprintf("%q: there should be %s or %s", n.Kind, Ether, IB)}
	}
	switch {
	case !within(n.Rate, 1, maxRate):
		return &Error{key + ".rate", fmt.Sprintf("%g B/s: there should be 1 B/s to %g B/s", n.Rate, maxRate)}
	case n.MTU < least || n.MTU > most:
		return &Error{key + ".mtu", fmt.Sprintf("%d B: there should be %d B to %d B on a network of kind %s", n.MTU, least,
			most, n.Kind)}
	case n.Frame < 0 || n.Frame > 1<<16:
		return &Error{key + ".frame", fmt.Sprintf("%d B: there should be 0 B to %d B", n.Frame, 1<<16)}
	case n.Kind == IB && n.Loss != 0:
		return &Error{key + ".loss", "the adapter of a network of kind ib recovers what is lost: leave the key out"}
	case n.Backplane != 0 && !within(n.Backplane, 1, maxRate):
		return &Error{key + ".backplane",
			fmt.Sprintf("%g B/s: there should be 1 B/s to %g B/s, or the key left out: no bound", n.Backplane, maxRate)}
	}
	if err := queue(key+".queue", n.Queue, n.MTU+n.Frame); err != nil {
		return err
	}
	if err := n.checkShaper(key + ".shaper"); err != nil {
		return err
	}
	return line(key, n.Latency, n.Loss, n.Jitter)
}

func (n *Network) checkShaper(key string) error {
	s := &n.Shaper
	switch {
	case *s == (Shaper{}):
		return nil
	case n.Kind == IB:
		return &Error{key, "on a network of kind ib senders wait for each other: leave the key out"}
	case !within(s.Rate, 1, maxRate):
		return &Error{key + ".rate", fmt.Sprintf("%g B/s: there should be 1 B/s to %g B/s", s.Rate, maxRate)}
	case s.Burst < 0 || s.Burst > maxBytes:
		return &Error{key + ".burst", fmt.Sprintf("%d B: there should be 0 B to %d B", s.Burst, maxBytes)}
	}
	return queue(key+".queue", s.Queue, n.MTU+n.Frame)
}

func (d *Description) checkSite(s *Site) error {
	key := "sites." + s.Name
	if !slices.ContainsFunc(d.Networks, func(n Network) bool { return n.Name == s.Network }) {
		return &Error{key + ".network", fmt.Sprintf("%q: there is no such network; there are %s", s.Network, names(d.Networks,
			func(n Network) string { return n.Name }))}
	}
	if len(s.Machines) == 0 {
		return &Error{key + ".machines", "there is none; a site has one group of machines at least"}
	}
	for i, g := range s.Machines {
		at := fmt.Sprintf("%s.machines[%d]", key, i)
		if !slices.ContainsFunc(d.Classes, func(c Class) bool { return c.Name == g.Class }) {
			return &Error{at + ".class", fmt.Sprintf("%q: there is no such class of machines; there are %s", g.Class,
				names(d.Classes, func(c Class) string { return c.Name }))}
		}
		if g.Count < 0 || g.Count > MaxMachines {
			return &Error{at + ".count",
				fmt.Sprintf("%d: there should be 1 to %d, or the key left out: as many as are asked for", g.Count, MaxMachines)}
		}
	}
	return nil
}

func (d *Description) checkWide() error {
	for i := range d.WAN {
		w, key := &d.WAN[i], fmt.Sprintf("wide[%d]", i)
		a, b := d.site(w.Between[0]), d.site(w.Between[1])
		switch {
		case a < 0 || b < 0:
			missing := w.Between[0]
			if a >= 0 {
				missing = w.Between[1]
			}
			return &Error{key + ".between", fmt.Sprintf("%q: there is no such site; there are %s", missing, d.siteNames())}
		case a == b:
			return &Error{key + ".between", fmt.Sprintf("%q twice: a line is between two sites; within one, its network is",
				w.Between[0])}
		case !within(w.Rate, 1, maxRate):
			return &Error{key + ".rate", fmt.Sprintf("%g B/s: there should be 1 B/s to %g B/s", w.Rate, maxRate)}
		}
		for _, v := range d.WAN[:i] {
			if v.Between == w.Between || v.Between == [2]string{w.Between[1], w.Between[0]} {
				return &Error{key + ".between", fmt.Sprintf("there is a line between %s and %s already", w.Between[0],
					w.Between[1])}
			}
		}
		for _, s := range []int{a, b} {
			n := d.network(d.Sites[s].Network)
			if err := queue(key+".queue", w.Queue, n.MTU+n.Frame); err != nil {
				return err
			}
			if n.Kind == IB && w.Loss != 0 {
				return &Error{key + ".loss",
					fmt.Sprintf("site %s is on a network of kind ib, whose adapters recover what is lost: leave the key out",
						d.Sites[s].Name)}
			}
		}
		if err := line(key, w.Latency, w.Loss, w.Jitter); err != nil {
			return err
		}
	}
	for b := range d.Sites {
		for a := range b {
			if d.line(a, b) < 0 {
				return &Error{"wide", fmt.Sprintf("there is no line between %s and %s; every two sites need one", d.Sites[a].Name,
					d.Sites[b].Name)}
			}
		}
	}
	return nil
}

func queue(key string, bytes, frame int) error {
	if bytes < frame || bytes > maxBytes {
		return &Error{key, fmt.Sprintf("%d B: it should hold one frame of %d B at least, and %d B at most", bytes, frame,
			maxBytes)}
	}
	return nil
}

func line(key string, latency time.Duration, loss float64, jitter time.Duration) error {
	if err := pause(key+".latency", latency); err != nil {
		return err
	}
	if !(loss >= 0 && loss < 1) {
		return &Error{key + ".loss", fmt.Sprintf("%g %%: there should be 0 %% or more, and less than 100 %%", 100*loss)}
	}
	return pause(key+".jitter", jitter)
}
