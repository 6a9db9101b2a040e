package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Error reports why a description is invalid, and the key at fault, such as "networks.gigabit.rate"
// or "events[2].rank". An empty key means the whole description.
type Error struct{ Key, Reason string }

// Error implements error.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}

func errorf(key, format string, args ...any) *Error { return &Error{key, fmt.Sprintf(format, args...)} }

// Bounds of a description. They are far beyond any machine, and keep sums of times within a Duration
// and sums of bytes within an int.
const (
	maxRate     = 1e15 // points or bytes per second
	maxPause    = time.Hour
	maxInstant  = 1000 * 24 * time.Hour
	maxBytes    = 1 << 40
	maxByteTime = 1e9 // nanoseconds per byte
	maxCores    = 1 << 16
	maxSlow     = 1e6
	maxCrowding = 100.0
	maxSites    = 1024
	minEtherMTU = 576 // every IPv4 host accepts this (RFC 791)
	maxEtherMTU = 65535
	minIBMTU    = 256 // the smallest path MTU of InfiniBand
)

// Check returns an *Error for a description of an impossible cluster. Model checks what depends on
// the number of machines.
func (d *Description) Check() error {
	if !nameable(d.Name) {
		return errorf("name", "%q: %s", d.Name, aName)
	}
	if err := d.checkNames(); err != nil {
		return err
	}
	for i := range d.Classes {
		if err := d.Classes[i].check("machines." + d.Classes[i].Name); err != nil {
			return err
		}
	}
	for i := range d.Networks {
		if err := d.Networks[i].check("networks." + d.Networks[i].Name); err != nil {
			return err
		}
	}
	for i := range d.Sites {
		if err := d.checkSite(&d.Sites[i]); err != nil {
			return err
		}
	}
	if err := d.checkWide(); err != nil {
		return err
	}
	for i := range d.Events {
		if err := d.checkEvent(&d.Events[i], fmt.Sprintf("events[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

// checkNames requires at least one class, network and site, and unique names.
func (d *Description) checkNames() error {
	for _, of := range []struct {
		key, one string
		names    []string
	}{
		{"machines", "class of machines", d.classNames()}, {"networks", "network", d.networkNames()},
		{"sites", "site", d.siteNames()},
	} {
		if len(of.names) == 0 {
			return errorf(of.key, "there is none; a cluster has one %s at least", of.one)
		}
		if len(of.names) > maxSites {
			return errorf(of.key, "there are %d of them; there may be %d at most", len(of.names), maxSites)
		}
		for i, n := range of.names {
			if !nameable(n) {
				return errorf(of.key, "%q is no name for a %s: %s", n, of.one, aName)
			}
			if slices.Contains(of.names[:i], n) {
				return errorf(of.key+"."+n, "there are two of that name; every %s has one of its own", of.one)
			}
		}
	}
	return nil
}

func (c *Class) check(key string) error {
	switch {
	case c.Cores < 1 || c.Cores > maxCores:
		return errorf(key+".cores", "%d: there should be 1 to %d", c.Cores, maxCores)
	case !within(c.Relaxation, 1, maxRate):
		return errorf(key+".relaxation", "%g point/s: there should be 1 to %g", c.Relaxation, maxRate)
	case !within(c.Jitter, 0, 1):
		return errorf(key+".jitter", "%g %%: there should be 0 to 100 %%", 100*c.Jitter)
	case c.Slow != 0 && !within(c.Slow, 1, maxSlow):
		return errorf(key+".slow", "%g: there should be a factor of 1 to %g; faster machines are a class of their own",
			c.Slow, maxSlow)
	case !within(c.Crowding, 0, maxCrowding):
		return errorf(key+".crowding", "%g %%: there should be 0 to %g %%", 100*c.Crowding, 100*maxCrowding)
	case !within(c.Straggle.PerSecond, 0, 1e6):
		return errorf(key+".straggle.rate", "%g /s: there should be 0 to 10⁶ /s", c.Straggle.PerSecond)
	case (c.Straggle.PerSecond == 0) != (c.Straggle.For == 0):
		return &Error{key + ".straggle", "a pause has both a rate and a length (for) above 0"}
	}
	return cmp.Or(c.Send.check(key+".send"), c.Receive.check(key+".receive"),
		pause(key+".straggle.for", c.Straggle.For), pause(key+".part", c.Part),
		pause(key+".wake.after", c.Wake.After), pause(key+".wake.takes", c.Wake.Takes))
}

func (c *Cost) check(key string) error {
	err := cmp.Or(pause(key+".message", c.Message), pause(key+".segment", c.Segment))
	if err == nil && !within(c.Byte, 0, maxByteTime) {
		return errorf(key+".byte", "%g ns: there should be 0 to 1 s", c.Byte)
	}
	return err
}

func (d *Description) checkEvent(e *Event, key string) error {
	kinds := 0
	for _, set := range []bool{e.Slow != 0, e.Lost, e.Killed, e.IsCut()} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return &Error{key, "there should be one of slow, lost, killed, cut and apart"}
	case e.At < 0 || e.At > maxInstant:
		return errorf(key+".at", "%v: there should be a time of 0 to 1000 days", e.At)
	case e.Until != 0 && e.Until <= e.At || e.Until > maxInstant:
		return errorf(key+".until", "%v: it should come after at, %v; leave the key out if the event lasts to the end",
			e.Until, e.At)
	case (e.Lost || e.Killed) && e.Until != 0:
		return &Error{key + ".until", "a machine that is lost, or whose peer is killed, does not come back: leave the key out"}
	case e.Slow != 0 && !within(e.Slow, 1, maxSlow):
		return errorf(key+".slow", "%g: there should be a factor of 1 to %g", e.Slow, maxSlow)
	case e.Launcher && e.Slow != 0:
		return &Error{key + ".launcher", "the launcher does not relax: leave the key out, or slow"}
	case (e.Launcher || e.IsCut()) && e.Rank != 0:
		return &Error{key + ".rank", "a cut, or an event of the launcher, is not of one machine: leave the key out"}
	case e.Rank < 0 || e.Rank >= MaxMachines:
		return errorf(key+".rank", "%d: ranks are 0 to %d", e.Rank, MaxMachines-1)
	case e.IsCut():
		return d.checkCut(e, key)
	}
	return nil
}

func (d *Description) checkCut(e *Event, key string) error {
	sites := e.Cut != [2]string{}
	switch {
	case sites && (len(e.Apart) > 0 || e.Launcher):
		return &Error{key, "a cut is between sites (cut), or between ranks (apart, launcher): leave one out"}
	case sites && e.Cut[0] == e.Cut[1]:
		return errorf(key+".cut", "%q twice: name two sites, or one whose network is cut in halves", e.Cut[0])
	}
	for i, name := range e.Cut {
		if sites && (i == 0 || name != "") && d.site(name) < 0 {
			return unknown(key+".cut", name, "site", d.siteNames())
		}
	}
	for i, rank := range e.Apart {
		if rank < 0 || rank >= MaxMachines {
			return errorf(key+".apart", "%d: ranks are 0 to %d", rank, MaxMachines-1)
		}
		if slices.Contains(e.Apart[:i], rank) {
			return errorf(key+".apart", "%d twice: name every rank once", rank)
		}
	}
	return nil
}

// aName is the rule of nameable.
const aName = "a name has 1 to 100 bytes that can be printed, and no space at either end"

func nameable(s string) bool {
	return s != "" && len(s) <= 100 && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func within(v, low, high float64) bool { return v >= low && v <= high }

func pause(key string, d time.Duration) error {
	if d < 0 || d > maxPause {
		return errorf(key, "%v: there should be 0 to %v", d, maxPause)
	}
	return nil
}

func names[T any](of []T, name func(T) string) (out []string) {
	for _, v := range of {
		out = append(out, name(v))
	}
	return out
}

func (d *Description) classNames() []string {
	return names(d.Classes, func(c Class) string { return c.Name })
}

func (d *Description) networkNames() []string {
	return names(d.Networks, func(n Network) string { return n.Name })
}

func (d *Description) siteNames() []string {
	return names(d.Sites, func(s Site) string { return s.Name })
}

// unknown reports a name that is none of those that there are.
func unknown(key, name, one string, known []string) *Error {
	return errorf(key, "%q: there is no such %s; there are %s", name, one, strings.Join(known, ", "))
}

// rate checks bytes per second.
func rate(key string, v float64) error {
	if !within(v, 1, maxRate) {
		return errorf(key, "%g B/s: there should be 1 B/s to %g B/s", v, maxRate)
	}
	return nil
}
