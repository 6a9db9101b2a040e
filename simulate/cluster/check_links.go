package cluster

import (
	"cmp"
	"fmt"
	"time"
)

func (n *Network) check(key string) error {
	least, most := minEtherMTU, maxEtherMTU
	switch n.Kind {
	case Ether:
	case IB:
		least, most = minIBMTU, 1<<30
	default:
		return errorf(key+".kind", "%q: there should be %s or %s", n.Kind, Ether, IB)
	}
	if err := rate(key+".rate", n.Rate); err != nil {
		return err
	}
	switch {
	case n.MTU < least || n.MTU > most:
		return errorf(key+".mtu", "%d B: there should be %d B to %d B on a network of kind %s", n.MTU, least, most, n.Kind)
	case n.Frame < 0 || n.Frame > 1<<16:
		return errorf(key+".frame", "%d B: there should be 0 B to %d B", n.Frame, 1<<16)
	case n.Kind == IB && n.Loss != 0:
		return &Error{key + ".loss", "the adapter of a network of kind ib recovers what is lost: leave the key out"}
	case n.Backplane != 0 && !within(n.Backplane, 1, maxRate):
		return errorf(key+".backplane", "%g B/s: there should be 1 B/s to %g B/s, or the key left out: no bound",
			n.Backplane, maxRate)
	}
	return cmp.Or(queue(key+".queue", n.Queue, n.MTU+n.Frame), n.checkShaper(key+".shaper"),
		line(key, n.Latency, n.Loss, n.Jitter))
}

func (n *Network) checkShaper(key string) error {
	s := &n.Shaper
	switch {
	case *s == (Shaper{}):
		return nil
	case n.Kind == IB:
		return &Error{key, "on a network of kind ib senders wait for each other: leave the key out"}
	}
	if err := rate(key+".rate", s.Rate); err != nil {
		return err
	}
	if s.Burst < 0 || s.Burst > maxBytes {
		return errorf(key+".burst", "%d B: there should be 0 B to %d B", s.Burst, maxBytes)
	}
	return queue(key+".queue", s.Queue, n.MTU+n.Frame)
}

func (d *Description) checkSite(s *Site) error {
	key := "sites." + s.Name
	if d.network(s.Network) < 0 {
		return unknown(key+".network", s.Network, "network", d.networkNames())
	}
	if len(s.Machines) == 0 {
		return &Error{key + ".machines", "there is none; a site has one group of machines at least"}
	}
	for i, g := range s.Machines {
		at := fmt.Sprintf("%s.machines[%d]", key, i)
		if d.class(g.Class) < 0 {
			return unknown(at+".class", g.Class, "class of machines", d.classNames())
		}
		if g.Count < 0 || g.Count > MaxMachines {
			return errorf(at+".count", "%d: there should be 1 to %d, or the key left out: as many as are asked for",
				g.Count, MaxMachines)
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
			return unknown(key+".between", missing, "site", d.siteNames())
		case a == b:
			return errorf(key+".between", "%q twice: a line is between two sites; within one, its network is",
				w.Between[0])
		}
		if err := rate(key+".rate", w.Rate); err != nil {
			return err
		}
		for _, v := range d.WAN[:i] {
			if v.Between == w.Between || v.Between == [2]string{w.Between[1], w.Between[0]} {
				return errorf(key+".between", "there is a line between %s and %s already", w.Between[0], w.Between[1])
			}
		}
		for _, s := range []int{a, b} {
			n := &d.Networks[d.network(d.Sites[s].Network)]
			if err := queue(key+".queue", w.Queue, n.MTU+n.Frame); err != nil {
				return err
			}
			if n.Kind == IB && w.Loss != 0 {
				return errorf(key+".loss",
					"site %s is on a network of kind ib, whose adapters recover what is lost: leave the key out",
					d.Sites[s].Name)
			}
		}
		if err := line(key, w.Latency, w.Loss, w.Jitter); err != nil {
			return err
		}
	}
	for b := range d.Sites {
		for a := range b {
			if d.line(a, b) < 0 {
				return errorf("wide", "there is no line between %s and %s; every two sites need one",
					d.Sites[a].Name, d.Sites[b].Name)
			}
		}
	}
	return nil
}

func queue(key string, bytes, frame int) error {
	if bytes < frame || bytes > maxBytes {
		return errorf(key, "%d B: it should hold one frame of %d B at least, and %d B at most",
			bytes, frame, maxBytes)
	}
	return nil
}

func line(key string, latency time.Duration, loss float64, jitter time.Duration) error {
	err := pause(key+".latency", latency)
	if err == nil && !(loss >= 0 && loss < 1) {
		return errorf(key+".loss", "%g %%: there should be 0 %% or more, and less than 100 %%", 100*loss)
	}
	return cmp.Or(err, pause(key+".jitter", jitter))
}
