package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// Model is a cluster of a given number of machines: the Description as it applies to each rank.
type Model struct {
	Name     string
	Hosts    []Host // by rank
	Networks []Network
	Sites    []string
	WAN      []WANLink // by index: see WANOf
	Events   []Event   // ordered by At
	wan      [][]int   // by two sites: index into WAN; -1: none
}

// Host is one machine of a model.
type Host struct {
	Class
	Site    int
	Network int // index into Model.Networks
	Machine int // number of the machine that ranks with the same number share; 0: the rank has its own
}

// WANOf returns the index in WAN of the link between two sites; -1 within one site.
func (m *Model) WANOf(a, b int) int {
	return m.wan[a][b]
}

// MaxMachines is the largest number of machines of a model.
const MaxMachines = 1 << 20

// Model returns the cluster of so many machines, one for each rank. Groups with a Count are filled
// in order. The others share the rest evenly; earlier groups take one more where it does not divide.
// The error is an *Error. The Description must have passed Check.
func (d *Description) Model(machines int) (*Model, error) {
	if machines < 1 || machines > MaxMachines {
		return nil, errorf("", "%d machines: there should be 1 to %d", machines, MaxMachines)
	}
	if most, open := d.Most(); !open && machines > most {
		return nil, errorf("sites", "%d machines are asked for, and the description has %d; "+
			"leave out the count of a group to have as many as are asked for", machines, most)
	}
	m := &Model{Name: d.Name, Networks: slices.Clone(d.Networks), WAN: slices.Clone(d.WAN), Events: slices.Clone(d.Events)}
	slices.SortStableFunc(m.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	counts := d.share(machines)
	m.Hosts = make([]Host, 0, machines)
	shared := 0
	for s := range d.Sites {
		site := &d.Sites[s]
		m.Sites = append(m.Sites, site.Name)
		network := d.network(site.Network)
		for g, group := range site.Machines {
			host := Host{Class: d.Classes[d.class(group.Class)], Site: s, Network: network}
			if group.OneMachine {
				shared++
				host.Machine = shared
			}
			for range counts[s][g] {
				m.Hosts = append(m.Hosts, host)
			}
		}
	}
	m.wan = make([][]int, len(d.Sites))
	for a := range m.wan {
		m.wan[a] = make([]int, len(d.Sites))
		for b := range m.wan[a] {
			m.wan[a][b] = d.line(a, b)
		}
	}
	for i, e := range d.Events {
		if e.Rank >= machines {
			return nil, errorf(fmt.Sprintf("events[%d].rank", i), "%d: the ranks of %d machines are 0 to %d",
				e.Rank, machines, machines-1)
		}
		if len(e.Apart) > 0 && slices.Max(e.Apart) >= machines {
			return nil, errorf(fmt.Sprintf("events[%d].apart", i), "%d: the ranks of %d machines are 0 to %d",
				slices.Max(e.Apart), machines, machines-1)
		}
	}
	return m, nil
}

// Most returns the number of machines of the groups with a Count. open reports that there is a group
// without one, so that there is no bound.
func (d *Description) Most() (most int, open bool) {
	for _, s := range d.Sites {
		for _, g := range s.Machines {
			most += g.Count
			open = open || g.Count == 0
		}
	}
	return most, open
}

// share returns the number of machines of every group of every site.
func (d *Description) share(machines int) [][]int {
	counts := make([][]int, len(d.Sites))
	left, open := machines, 0
	for s, site := range d.Sites {
		counts[s] = make([]int, len(site.Machines))
		for g, group := range site.Machines {
			counts[s][g] = min(group.Count, left)
			left -= counts[s][g]
			if group.Count == 0 {
				open++
			}
		}
	}
	for s, site := range d.Sites {
		for g, group := range site.Machines {
			if group.Count == 0 {
				counts[s][g] = (left + open - 1) / open
				left -= counts[s][g]
				open--
			}
		}
	}
	return counts
}

// class returns the index of a class; −1: there is none of that name.
func (d *Description) class(name string) int {
	return slices.IndexFunc(d.Classes, func(c Class) bool { return c.Name == name })
}

func (d *Description) network(name string) int {
	return slices.IndexFunc(d.Networks, func(n Network) bool { return n.Name == name })
}

func (d *Description) site(name string) int {
	return slices.IndexFunc(d.Sites, func(s Site) bool { return s.Name == name })
}

// line returns the index of the link between two sites; -1 if there is none.
func (d *Description) line(a, b int) int {
	x, y := d.Sites[a].Name, d.Sites[b].Name
	return slices.IndexFunc(d.WAN, func(w WANLink) bool {
		return w.Between == [2]string{x, y} || w.Between == [2]string{y, x}
	})
}
