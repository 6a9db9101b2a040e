// Package buddy keeps the iterates of a peer in the memory of another one, its buddy, so that a run goes on exactly
// after a loss (double in-memory checkpoints: Zheng, Shi and Kalé, IEEE Cluster 2004). All peers keep the same
// iterates; see iterate.OpKeep. After a loss all go back to the newest one that is known of every peer.
//
// A Store holds what one peer has: its own values, and those of the peer whose buddy it is. Newest decides from what
// the survivors hold, and who sends the values of the lost peers.
package buddy

import (
	"maps"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Of returns the buddy of every rank, which no two ranks share. hosts are the names of the ranks' hosts. Unless one
// host has more than half of the peers, the buddy of each is on another host, so that the loss of a host is no loss of
// both copies. A single peer is its own buddy.
func Of(hosts []string) []iterate.Rank {
	byHost := make([]iterate.Rank, len(hosts))
	for r := range byHost {
		byHost[r] = iterate.Rank(r)
	}
	most, count := 0, map[string]int{}
	for _, h := range hosts {
		count[h]++
		most = max(most, count[h])
	}
	slices.SortStableFunc(byHost, func(a, b iterate.Rank) int {
		if hosts[a] == hosts[b] {
			return 0
		}
		return slices.Index(hosts, hosts[a]) - slices.Index(hosts, hosts[b])
	})
	shift := most
	if len(hosts) == most {
		shift = 1
	}
	out := make([]iterate.Rank, len(hosts))
	for i, r := range byHost {
		out[r] = byHost[(i+shift)%len(hosts)]
	}
	return out
}

// KeepEvery returns the least time between two kept iterates of a run whose longest block has so many points: 2 % of it
// suffice to store a copy of that block at 400 MB/s. A run that ends before needs no copies. Later ones follow by the
// time that they take (iterate.KeepClock).
func KeepEvery(points int) time.Duration {
	return 250*time.Millisecond + time.Duration(points)*time.Microsecond
}

// Copy is what a run needs of one peer to go on from an iterate.
type Copy struct {
	Iterate iterate.Iteration
	State   []byte    // see iterate.Config.State
	Values  []float64 // of the peer's box, [z][y][x]
}

// Store holds the copies that one peer has. It is not safe for concurrent use.
type Store struct {
	Allocate func(n int) []float64 // as problem.Config.Allocate; nil: make

	own     *Copy
	pending *Copy // own, without values: the peer waits at this iterate
	others  map[iterate.Rank][]*Copy
	unused  [][]float64 // memory for values
}

// Begin records that the peer keeps the iterate that it has made last, whose values are those of its block until
// Complete or Freeze.
func (s *Store) Begin(k iterate.Iteration, state []byte) {
	s.pending = &Copy{Iterate: k, State: slices.Clone(state)}
}

// Complete records that every peer has kept iterate k. fill writes the values of the peer's block. Copies of other
// iterates are dropped, and the memory of the peer's older copy is used again.
func (s *Store) Complete(k iterate.Iteration, points int, fill func(dst []float64)) {
	if s.pending == nil || s.pending.Iterate != k {
		return
	}
	if s.own != nil && len(s.own.Values) == points {
		s.pending.Values = s.own.Values
	} else {
		s.pending.Values = s.Array(points)
	}
	fill(s.pending.Values)
	s.own, s.pending = s.pending, nil
	s.drop(func(o *Copy) bool { return o.Iterate < k })
}

// Freeze ends an epoch, in which the peer's block has the values u of iterate k now. If it keeps that iterate, its values
// are u: other peers may have completed it.
func (s *Store) Freeze(k iterate.Iteration, u []float64) {
	if s.pending != nil && s.pending.Iterate != k {
		s.pending = nil
	}
	if s.pending != nil {
		s.pending.Values = u
	}
}

// Resume records that the peer goes on from a copy of its own block, and drops copies of newer iterates.
func (s *Store) Resume(c *Copy) {
	s.own, s.pending = c, nil
	s.drop(func(o *Copy) bool { return o.Iterate > c.Iterate })
}

func (s *Store) drop(which func(*Copy) bool) {
	for _, r := range slices.Sorted(maps.Keys(s.others)) {
		for _, c := range s.others[r] {
			if which(c) && len(s.unused) < maxUnused {
				s.unused = append(s.unused, c.Values)
			}
		}
		if s.others[r] = slices.DeleteFunc(s.others[r], which); len(s.others[r]) == 0 {
			delete(s.others, r)
		}
	}
}

// maxUnused bounds the arrays of a store that no copy uses.
const maxUnused = 2

// Reserve allocates memory for the peer's own values and for two copies of another peer's, and writes to it, so that
// the first copies take no longer than later ones.
func (s *Store) Reserve(own, other int) {
	if s.own != nil {
		return
	}
	var all [][]float64
	for _, n := range []int{own, other, other} {
		u := s.Array(n)
		clear(u)
		all = append(all, u)
	}
	s.unused = all
}

// Array returns memory for the values of a block: that of a dropped copy, if there is one. Nobody may read that copy
// any more.
func (s *Store) Array(points int) []float64 {
	if i := slices.IndexFunc(s.unused, func(u []float64) bool { return len(u) == points }); i >= 0 {
		u := s.unused[i]
		s.unused = slices.Delete(s.unused, i, i+1)
		return u
	}
	if s.Allocate == nil {
		return make([]float64, points)
	}
	return s.Allocate(points)
}

// Add records a copy of another peer's block, in place of one of the same iterate.
func (s *Store) Add(r iterate.Rank, c *Copy) {
	if s.others == nil {
		s.others = map[iterate.Rank][]*Copy{}
	}
	list := slices.DeleteFunc(s.others[r], func(old *Copy) bool { return old.Iterate == c.Iterate })
	s.others[r] = append(list, c)
}

// Own returns the peer's own copy of an iterate, nil if there is none.
func (s *Store) Own(k iterate.Iteration) *Copy {
	for _, c := range []*Copy{s.own, s.pending} {
		if c != nil && c.Iterate == k && c.Values != nil {
			return c
		}
	}
	return nil
}

// Other returns the copy of another peer's block at an iterate, nil if there is none.
func (s *Store) Other(r iterate.Rank, k iterate.Iteration) *Copy {
	for _, c := range s.others[r] {
		if c.Iterate == k {
			return c
		}
	}
	return nil
}

// Discard drops all copies: the run begins again.
func (s *Store) Discard() { *s = Store{Allocate: s.Allocate} }

// Holding lists the iterates that a survivor has copies of.
type Holding struct {
	Own    []iterate.Iteration                  `json:"own"`
	Others map[iterate.Rank][]iterate.Iteration `json:"others"`
}

// Holding returns what the store has. Freeze must have been called.
func (s *Store) Holding() (h Holding) {
	for _, c := range []*Copy{s.own, s.pending} {
		if c != nil && c.Values != nil {
			h.Own = append(h.Own, c.Iterate)
		}
	}
	for _, r := range slices.Sorted(maps.Keys(s.others)) {
		if h.Others == nil {
			h.Others = map[iterate.Rank][]iterate.Iteration{}
		}
		for _, c := range s.others[r] {
			h.Others[r] = append(h.Others[r], c.Iterate)
		}
	}
	return h
}

// Newest returns the newest iterate of which the block of every peer is known, and for each lost peer a survivor that
// has a copy of its block. held has an entry for each rank, nil for a lost peer. If there is no such iterate, ok is
// false: the run must begin again.
func Newest(held []*Holding) (k iterate.Iteration, from map[iterate.Rank]iterate.Rank, ok bool) {
	candidates := map[iterate.Iteration]bool{}
	for _, h := range held {
		if h != nil {
			for _, own := range h.Own {
				candidates[own] = true
			}
		}
	}
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(candidates))) {
		if from, ok := holders(held, k); ok {
			return k, from, true
		}
	}
	return 0, nil, false
}

// holders returns who has iterate k of each lost peer, and whether it is known of every peer.
func holders(held []*Holding, k iterate.Iteration) (map[iterate.Rank]iterate.Rank, bool) {
	from := map[iterate.Rank]iterate.Rank{}
	for r, h := range held {
		if h != nil {
			if !slices.Contains(h.Own, k) {
				return nil, false
			}
			continue
		}
		i := slices.IndexFunc(held, func(q *Holding) bool {
			return q != nil && slices.Contains(q.Others[iterate.Rank(r)], k)
		})
		if i < 0 {
			return nil, false
		}
		from[iterate.Rank(r)] = iterate.Rank(i)
	}
	return from, true
}
