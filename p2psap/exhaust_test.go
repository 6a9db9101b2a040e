package p2psap

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var exhaustBig = flag.Bool("exhaust.big", false, "TestEveryInterleaving explores its larger instances too")

// explore visits every state of an instance, replaying the steps to it from the start. From each state it
// continues without faults: every message must arrive and every change must end.
func explore(t *testing.T, in *instance, most int) (states int, switched bool) {
	known := map[uint64]bool{}
	ways := [][]string{nil}
	for len(ways) > 0 {
		way := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		l, err := newLab(in)
		for _, c := range way {
			if err == nil {
				err = l.do(c)
			}
		}
		if err == nil {
			if h := l.hash(); known[h] {
				continue
			} else {
				known[h] = true
			}
			for _, c := range l.choices() {
				ways = append(ways, append(way[:len(way):len(way)], c))
			}
			err = l.finish()
		}
		if err != nil {
			t.Fatalf("%s: %v\nafter:\n  %s", in.name, err, strings.Join(way, "\n  "))
		}
		switched = switched || l.nodes[0].session(l.ids[0]).info.Changes > 0
		if len(known) > most {
			t.Fatalf("%s: more than %d states", in.name, most)
		}
	}
	return len(known), switched
}

// TestEveryInterleaving tries every order of events in small instances: arrivals of messages and frames,
// calls of users, a control connection that breaks with everything in flight, a lost frame.
func TestEveryInterleaving(t *testing.T) {
	for _, in := range []instance{
		{name: "sync to async", threads: [2][]string{{"send async"}, {"async"}}, breaks: 1},
		{name: "a frame is lost", threads: [2][]string{{"send async"}, {"async"}}, drops: 1},
		{name: "different modes", threads: [2][]string{{"send async"}, {"sync send"}}, breaks: 1},
		{name: "a monitor alone", threads: [2][]string{{"send far send"}, nil}, breaks: 1, long: true},
		{name: "a monitor, answered late", threads: [2][]string{{"far send", "wait"}, {"lossy"}}, breaks: 1, long: true},
		{name: "a monitor, answered late, against scheme", threads: [2][]string{{"far async", "wait"}, {"async"}},
			breaks: 1, long: true},
		{name: "both monitors", threads: [2][]string{{"far"}, {"lossy"}}, breaks: 1},
		{name: "monitor against scheme", threads: [2][]string{{"far", "async"}, {"async"}}},
		{name: "close against scheme", threads: [2][]string{{"async"}, {"async", "close"}}, breaks: 1},
		{name: "reliable link, credit used up", threads: [2][]string{{"put put put far put"}, {"take"}}, reliable: true, long: true},
		{name: "reliable link, credit used up twice", reliable: true, big: true,
			threads: [2][]string{{"put put put far put put put"}, {"take take"}}},
		{name: "reliable link, to async", threads: [2][]string{{"put async"}, {"put async"}}, breaks: 1, reliable: true},
		{name: "there and back", threads: [2][]string{{"async sync"}, {"async sync"}}, breaks: 1},
		{name: "rail, cut", threads: [2][]string{{"send cut"}, {"send"}}, breaks: 1, rail: true, long: true},
		{name: "rail, falls at both ends", threads: [2][]string{{"send fall"}, {"send fall"}}, rail: true, big: true},
		{name: "rail, cut before async", threads: [2][]string{{"send async", "cut"}, {"async"}}, rail: true, long: true},
		{name: "rail, falls before async", threads: [2][]string{{"async", "lose"}, {"put async"}}, rail: true, long: true},
		{name: "rail, falls before async at either end", threads: [2][]string{{"put async", "lose"}, {"put async"}},
			rail: true, big: true},
		{name: "rail, falls before async, and a message", threads: [2][]string{{"async", "lose send"}, {"async"}},
			rail: true, long: true},
		{name: "rail, cut while one end waits", threads: [2][]string{{"send async", "cut"}, {"get async"}}, rail: true, long: true},
		{name: "rail, cut in a change without draining", threads: [2][]string{{"sync send", "cut"}, {"sync"}}, rail: true},
		{name: "rail, cut in other modes", threads: [2][]string{{"async", "cut"}, {"sync"}}, rail: true},
		{name: "rail, cut between async and sync", threads: [2][]string{{"async sync", "cut"}, {"async sync"}}, rail: true,
			big: true},
		{name: "rail, cut against monitors", threads: [2][]string{{"far send", "cut"}, {"lossy"}}, rail: true, big: true},
		{name: "rail, falls at both ends against schemes", threads: [2][]string{{"sync send", "fall"}, {"async", "fall"}},
			rail: true, big: true},
		{name: "rail, falls at both ends while draining", threads: [2][]string{{"async", "fall"}, {"put async", "fall"}},
			rail: true, big: true},
		{name: "rail, cut and there again", threads: [2][]string{{"send cut rise send"}, {"take send"}}, rail: true,
			big: true},
		{name: "rail, cut when closing", threads: [2][]string{{"send close", "cut"}, {"send"}}, rail: true, big: true},
		{name: "everybody", threads: [2][]string{{"send far", "async"}, {"lossy send", "async"}}, breaks: 1, big: true},
		{name: "two changes and messages", threads: [2][]string{{"send async sync send"}, {"send async sync take"}},
			breaks: 1, big: true},
	} {
		t.Run(in.name, func(t *testing.T) {
			if in.big && !*exhaustBig {
				t.Skip("larger: go test ./p2psap -run EveryInterleaving -exhaust.big")
			}
			if in.long && testing.Short() {
				t.Skip("longer: without -short")
			}
			most := 100_000
			if in.big {
				most = 3_000_000
			}
			states, switched := explore(t, &in, most)
			t.Logf("%d states", states)
			require.Greater(t, states, 10)
			require.Equal(t, in.name != "different modes", switched, "the session changes in some interleaving")
		})
	}
}
