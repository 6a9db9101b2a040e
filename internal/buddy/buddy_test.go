package buddy_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBuddiesOnOneHost(t *testing.T) {
	require.Equal(t, []iterate.Rank{0}, buddy.Of([]string{"a"}))
	require.Equal(t, []iterate.Rank{1, 2, 0}, buddy.Of([]string{"a", "a", "a"}))
	require.Equal(t, []iterate.Rank{2, 3, 0, 1}, buddy.Of([]string{"a", "a", "b", "b"}))
	require.Equal(t, []iterate.Rank{1, 0, 3, 2}, buddy.Of([]string{"a", "b", "b", "a"}))
}

// Every peer is the buddy of one other, on another host if that is possible for all.
func TestBuddies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 2, 40).Draw(t, "hosts")
		count, most := map[string]int{}, 0
		for _, h := range hosts {
			count[h]++
			most = max(most, count[h])
		}
		taken := map[iterate.Rank]bool{}
		for r, b := range buddy.Of(hosts) {
			require.NotEqual(t, iterate.Rank(r), b)
			require.False(t, taken[b], "rank %d is the buddy of two", b)
			taken[b] = true
			if 2*most <= len(hosts) {
				require.NotEqual(t, hosts[r], hosts[b], "ranks %d and %d of %v", r, b, hosts)
			}
		}
	})
}

func TestNewest(t *testing.T) {
	type own = []iterate.Iteration
	type others = map[iterate.Rank][]iterate.Iteration
	for name, c := range map[string]struct {
		held []*buddy.Holding
		k    iterate.Iteration
		from map[iterate.Rank]iterate.Rank
		ok   bool
	}{
		"complete at one": {[]*buddy.Holding{
			{Own: own{20}, Others: others{2: own{20}}}, {Own: own{10, 20}, Others: others{0: own{10, 20}}}, nil,
		}, 20, map[iterate.Rank]iterate.Rank{2: 0}, true},
		"copy under way": {[]*buddy.Holding{
			{Own: own{10, 20}, Others: others{2: own{10}}}, {Own: own{10, 20}, Others: others{0: own{10, 20}}}, nil,
		}, 10, map[iterate.Rank]iterate.Rank{2: 0}, true},
		"a peer and its buddy": {[]*buddy.Holding{nil, {Own: own{10}, Others: others{0: own{10}}}, nil}, 0, nil, false},
		"nothing kept":         {[]*buddy.Holding{{}, nil}, 0, nil, false},
		"nobody left":          {[]*buddy.Holding{nil, nil}, 0, nil, false},
		"two, not neighbouring": {[]*buddy.Holding{
			nil, {Own: own{5}, Others: others{0: own{5}}}, nil, {Own: own{5}, Others: others{2: own{5}}},
		}, 5, map[iterate.Rank]iterate.Rank{0: 1, 2: 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k, from, ok := buddy.Newest(c.held)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.k, k)
			if ok {
				require.Equal(t, c.from, from)
			}
		})
	}
}

// A store holds at most two iterates of each block, one when all peers have kept the newest.
func TestStoreDropsOlderCopies(t *testing.T) {
	var s buddy.Store
	fill := func(v float64) func([]float64) {
		return func(dst []float64) { dst[0] = v }
	}
	var memory *float64
	for k := iterate.Iteration(10); k < 50; k += 10 {
		s.Add(3, &buddy.Copy{Iterate: k, Values: []float64{-float64(k)}})
		s.Begin(k, []byte(fmt.Sprint(k)))
		require.Nil(t, s.Own(k), "its values are not known before the copies are complete")
		require.LessOrEqual(t, len(s.Holding().Others[3]), 2)
		s.Complete(k-1, 1, fill(0)) // another iterate
		require.Nil(t, s.Own(k))
		s.Complete(k, 1, fill(float64(k)))
		require.Equal(t, &buddy.Copy{Iterate: k, State: []byte(fmt.Sprint(k)), Values: []float64{float64(k)}}, s.Own(k))
		require.Equal(t, []iterate.Iteration{k}, s.Holding().Own)
		require.Equal(t, []iterate.Iteration{k}, s.Holding().Others[3])
		require.Equal(t, -float64(k), s.Other(3, k).Values[0])
		if at := &s.Own(k).Values[0]; memory != nil {
			require.Same(t, memory, at, "the memory is used again")
		} else {
			memory = at
		}
	}
	s.Begin(60, nil)
	s.Add(3, &buddy.Copy{Iterate: 60, Values: []float64{1}})
	s.Freeze(60, []float64{60})
	require.Equal(t, []iterate.Iteration{40, 60}, s.Holding().Own)
	s.Resume(s.Own(40))
	require.Equal(t, buddy.Holding{
		Own: []iterate.Iteration{40}, Others: map[iterate.Rank][]iterate.Iteration{3: {40}},
	}, s.Holding())
	s.Begin(60, nil)
	s.Freeze(47, []float64{47})
	require.Equal(t, []iterate.Iteration{40}, s.Holding().Own, "the values are those of another iterate")
	s.Discard()
	require.Equal(t, buddy.Holding{}, s.Holding())
}
