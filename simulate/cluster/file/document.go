package file

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// The keys of a description, in the order in which they are written.
var (
	documentKeys = []string{"name", "about", "sources", "machines", "networks", "sites", "wide", "events"}
	classKeys    = []string{"cores", "relaxation", "copies", "send", "receive", "jitter", "straggle", "slow", "part",
		"crowding", "wake"}
	costKeys     = []string{"message", "segment", "byte"}
	straggleKeys = []string{"rate", "for"}
	wakeKeys     = []string{"after", "takes"}
	networkKeys  = []string{"kind", "rate", "latency", "queue", "mtu", "frame", "loss", "jitter", "backplane", "shaper"}
	shaperKeys   = []string{"rate", "burst", "queue", "outside"}
	siteKeys     = []string{"network", "machines"}
	groupKeys    = []string{"class", "count", "together"}
	wideKeys     = []string{"between", "rate", "latency", "queue", "loss", "jitter"}
	eventKeys    = []string{"at", "until", "rank", "slow", "lost", "killed", "cut", "apart", "launcher"}
)

// reader reads a description value by value. The first error stays, and values read after it are
// zero.
type reader struct {
	lines map[string]int // of every key
	err   error
}

func (r *reader) fail(err error) {
	r.err = cmp.Or(r.err, err)
}

// parse reads a description that has not been checked.
func (r *reader) parse(name string, root yamldoc.Entry) *cluster.Description {
	get := r.mapping(root, documentKeys)
	d := &cluster.Description{Name: name}
	if e := get("name"); !e.Null() {
		d.Name = r.text(e)
	}
	if e := get("about"); !e.Null() {
		d.About = strings.TrimSpace(r.text(e))
	}
	for _, e := range r.list(get("sources"), "sources of figures") {
		d.Sources = append(d.Sources, strings.TrimSpace(r.text(e)))
	}
	r.named(get("machines"), "classes of machines", func(name string, e yamldoc.Entry) {
		d.Classes = append(d.Classes, r.class(name, e))
	})
	r.named(get("networks"), "networks", func(name string, e yamldoc.Entry) {
		d.Networks = append(d.Networks, r.network(name, e))
	})
	r.named(get("sites"), "sites", func(name string, e yamldoc.Entry) { d.Sites = append(d.Sites, r.site(name, e)) })
	for _, e := range r.list(get("wide"), "lines between sites") {
		d.WAN = append(d.WAN, r.wide(e))
	}
	for _, e := range r.list(get("events"), "events") {
		d.Events = append(d.Events, r.event(e))
	}
	return d
}

func (r *reader) class(name string, e yamldoc.Entry) cluster.Class {
	get := r.mapping(e, classKeys)
	c := cluster.Class{
		Name: name, Cores: 1, Relaxation: r.quantity(get("relaxation"), relaxations(), true), Copies: r.yes(get("copies")),
		Send: r.cost(get("send")), Receive: r.cost(get("receive")), Jitter: r.quantity(get("jitter"), ratios(), false),
		Slow: r.number(get("slow")),
		Part: r.duration(get("part"), false), Crowding: r.quantity(get("crowding"), ratios(), false),
	}
	r.zero(get("slow"), c.Slow == 0, aFactor)
	if e := get("wake"); !e.Null() {
		get := r.mapping(e, wakeKeys)
		c.Wake = cluster.Wake{After: r.duration(get("after"), false), Takes: r.duration(get("takes"), true)}
	}
	if e := get("cores"); !e.Null() {
		c.Cores = r.integer(e)
	}
	if e := get("straggle"); !e.Null() {
		get := r.mapping(e, straggleKeys)
		c.Straggle = cluster.Straggle{PerSecond: r.quantity(get("rate"), frequencies(), true), For: r.duration(get("for"),
			true)}
	}
	return c
}

func (r *reader) cost(e yamldoc.Entry) cluster.Cost {
	if e.Null() {
		return cluster.Cost{}
	}
	get := r.mapping(e, costKeys)
	return cluster.Cost{Message: r.duration(get("message"), false), Segment: r.duration(get("segment"), false),
		Byte: r.quantity(get("byte"), times(), false)}
}

func (r *reader) network(name string, e yamldoc.Entry) cluster.Network {
	get := r.mapping(e, networkKeys)
	n := cluster.Network{
		Name: name, Kind: r.word(get("kind")), Rate: r.quantity(get("rate"), rates(), true),
		Latency: r.duration(get("latency"), true),
		Queue:   r.size(get("queue"), true), MTU: r.size(get("mtu"), true), Frame: r.size(get("frame"), false),
		Loss: r.quantity(get("loss"), ratios(), false), Jitter: r.duration(get("jitter"), false),
		Backplane: r.quantity(get("backplane"), rates(), false),
	}
	r.zero(get("backplane"), n.Backplane == 0, "there should be 1 B/s or more; leave the key out where there is no bound")
	if e := get("shaper"); !e.Null() {
		get := r.mapping(e, shaperKeys)
		n.Shaper = cluster.Shaper{Rate: r.quantity(get("rate"), rates(), true), Burst: r.size(get("burst"), false),
			Queue: r.size(get("queue"), true), Outside: r.yes(get("outside"))}
		r.zero(get("rate"), n.Shaper.Rate == 0, "there should be 1 B/s or more; leave shaper out where there is no bound")
	}
	return n
}

func (r *reader) site(name string, e yamldoc.Entry) cluster.Site {
	get := r.mapping(e, siteKeys)
	s := cluster.Site{Name: name, Network: r.word(get("network"))}
	for _, e := range r.list(get("machines"), "groups of machines") {
		get := r.mapping(e, groupKeys)
		g := cluster.Group{Class: r.word(get("class")), OneMachine: r.yes(get("together"))}
		if e := get("count"); !e.Null() {
			if g.Count = r.integer(e); g.Count == 0 {
				r.fail(e.Errorf("0: leave the key out to have as many machines as are asked for"))
			}
		}
		s.Machines = append(s.Machines, g)
	}
	return s
}

func (r *reader) wide(e yamldoc.Entry) cluster.WANLink {
	get := r.mapping(e, wideKeys)
	w := cluster.WANLink{
		Rate: r.quantity(get("rate"), rates(), true), Latency: r.duration(get("latency"), true), Queue: r.size(get("queue"),
			true),
		Loss: r.quantity(get("loss"), ratios(), false), Jitter: r.duration(get("jitter"), false),
	}
	between := get("between")
	sites, err := between.Sequence(2, "sites")
	if err != nil {
		r.fail(err)
		return w
	}
	w.Between = [2]string{r.word(sites[0]), r.word(sites[1])}
	return w
}

func (r *reader) event(e yamldoc.Entry) cluster.Event {
	get := r.mapping(e, eventKeys)
	v := cluster.Event{At: r.duration(get("at"), true), Until: r.duration(get("until"), false),
		Slow: r.number(get("slow")), Lost: r.yes(get("lost")), Killed: r.yes(get("killed")),
		Launcher: r.yes(get("launcher"))}
	r.zero(get("slow"), v.Slow == 0, aFactor)
	r.zero(get("until"), v.Until == 0, "it should come after at; leave the key out where the event is for good")
	rank, cut, apart := get("rank"), get("cut"), get("apart")
	if !rank.Null() {
		v.Rank = r.integer(rank)
	}
	switch {
	case !cut.Null():
		sites := r.list(cut, "sites")
		if len(sites) != 1 && len(sites) != 2 {
			r.fail(cut.Errorf("there should be two sites, or one whose network is cut in halves"))
			return v
		}
		for i, s := range sites {
			v.Cut[i] = r.word(s)
		}
	case !apart.Null():
		for _, rank := range r.list(apart, "ranks") {
			v.Apart = append(v.Apart, r.integer(rank))
		}
		if len(v.Apart) == 0 {
			r.fail(apart.Errorf("there should be the ranks of machines that the others do not reach"))
		}
	case rank.Null() && !v.Launcher:
		r.fail(rank.Errorf("it is missing: give the rank of the machine"))
	}
	return v
}

// mapping returns the entries of a mapping by key, and records their lines.
func (r *reader) mapping(e yamldoc.Entry, keys []string) func(key string) yamldoc.Entry {
	entries := make([]yamldoc.Entry, len(keys))
	if r.err == nil {
		found, err := yamldoc.Mapping(e.Source, e.Value, keys...)
		if err == nil {
			entries = found
		}
		r.fail(err)
	}
	r.lines[e.Key] = e.Line
	for _, f := range entries {
		if !f.Null() || e.Key != "" { // a key of the whole file that is missing has no line
			r.lines[f.Key] = f.Line
		}
	}
	return func(key string) yamldoc.Entry { return entries[slices.Index(keys, key)] }
}

// named calls f for every name of a mapping.
func (r *reader) named(e yamldoc.Entry, of string, f func(name string, e yamldoc.Entry)) {
	if e.Null() {
		r.fail(e.Errorf("it is missing: there should be %s by name", of))
	}
	if r.err != nil {
		return
	}
	names, entries, err := e.Named(of)
	r.fail(err)
	for i, name := range names {
		f(name, entries[i])
	}
}

func (r *reader) list(e yamldoc.Entry, of string) []yamldoc.Entry {
	if r.err != nil || e.Null() {
		return nil
	}
	entries, err := e.List(of)
	r.fail(err)
	return entries
}

func (r *reader) text(e yamldoc.Entry) string {
	s, ok := e.Text()
	if !ok {
		r.fail(e.Errorf("there should be a text, not %s", yamldoc.Kind(e.Value)))
	}
	return s
}

// word reads a required text. A number is taken as it is written.
func (r *reader) word(e yamldoc.Entry) string {
	if e.Null() {
		r.fail(e.Errorf("it is missing"))
	}
	switch v := e.Value.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(v.GetToken().Value)
	}
	return r.text(e)
}

func (r *reader) integer(e yamldoc.Entry) int {
	v, err := e.Integer()
	r.fail(err)
	return v
}

func (r *reader) yes(e yamldoc.Entry) bool {
	if e.Null() {
		return false
	}
	v, err := e.Bool()
	r.fail(err)
	return v
}

// number reads a plain number; a missing one is 0.
func (r *reader) number(e yamldoc.Entry) float64 {
	switch v := e.Value.(type) {
	case nil:
		return 0
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode: // 1e3, without a point, is a string to YAML 1.1
		text := strings.TrimSpace(v.GetToken().Value)
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	r.fail(e.Errorf("there should be a number, not %s", yamldoc.Kind(e.Value)))
	return 0
}

// zero refuses an explicit zero where a missing key has another meaning.
func (r *reader) zero(e yamldoc.Entry, zero bool, why string) {
	if !e.Null() && zero {
		r.fail(e.Errorf("0: %s", why))
	}
}

const aFactor = "there should be a factor of 1 or more; leave the key out where nothing is slower"

func (r *reader) quantity(e yamldoc.Entry, m measure, needed bool) float64 {
	return read(r, e, m, needed, m.parse)
}

func (r *reader) duration(e yamldoc.Entry, needed bool) time.Duration {
	return time.Duration(r.whole(e, times(), "nanoseconds", needed))
}

func (r *reader) size(e yamldoc.Entry, needed bool) int {
	return int(r.whole(e, sizes(), "bytes", needed))
}

func (r *reader) whole(e yamldoc.Entry, m measure, least string, needed bool) int64 {
	return read(r, e, m, needed, func(text string) (int64, error) { return m.whole(text, least) })
}

// read parses the text of a quantity; a missing one is 0.
func read[T any](r *reader, e yamldoc.Entry, m measure, needed bool, parse func(text string) (T, error)) (v T) {
	text := ""
	switch n := e.Value.(type) {
	case nil:
		if needed {
			r.fail(e.Errorf("it is missing: there should be %s, as %q", m.of, m.example))
		}
		return v
	case *ast.IntegerNode, *ast.FloatNode:
		text = n.GetToken().Value
	case *ast.StringNode:
		text = n.Value
	default:
		r.fail(e.Errorf("there should be %s, as %q, not %s", m.of, m.example, yamldoc.Kind(n)))
		return v
	}
	v, err := parse(strings.TrimSpace(text))
	if err != nil {
		r.fail(e.Errorf("%v", err))
	}
	return v
}

// place adds the file and the line to an error of package cluster.
func (r *reader) place(file string, err error) error {
	e, is := errors.AsType[*cluster.Error](err)
	if !is {
		return err
	}
	line := 0
	for key := e.Key; line == 0 && key != ""; {
		line = r.lines[key]
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return &Error{File: file, Line: line, Key: e.Key, Reason: e.Reason}
}
