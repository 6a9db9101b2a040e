package microproto_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var ping = microproto.NewEvent[string]("test.ping")

func TestHandlersRunInOrder(t *testing.T) {
	type bind struct {
		proto    string
		priority microproto.Priority
		tag      string
	}
	for _, c := range []struct {
		name  string
		binds []bind
		want  string
	}{
		{"by priority", []bind{{"p", microproto.Late, "c"}, {"p", microproto.First, "a"}, {"p", 0, "b"}}, "a b c"},
		{"equal: by attachment", []bind{{"p", 0, "a"}, {"q", 0, "b"}, {"r", 0, "c"}}, "a b c"},
		{"equal within one: by binding", []bind{{"p", 0, "a"}, {"p", 0, "b"}, {"q", -1, "z"}}, "z a b"},
		{"extremes", []bind{{"p", 32767, "b"}, {"q", -32768, "a"}}, "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran []string
			var mps []microproto.MicroProtocol
			for i := 0; i < len(c.binds); {
				j := i
				for j < len(c.binds) && c.binds[j].proto == c.binds[i].proto {
					j++
				}
				own := c.binds[i:j]
				mps = append(mps, of(own[0].proto, func(b *binder) {
					for _, w := range own {
						microproto.Bind(b, ping, w.priority, func(_ *exec, s string) { ran = append(ran, w.tag) })
					}
				}))
				i = j
			}
			comp := composite(t, microproto.Config{}, mps...)
			do(t, comp, func(x *exec) { require.True(t, microproto.Raise(x, ping, "")) })
			require.Equal(t, c.want, strings.Join(ran, " "))
		})
	}
}

func TestHaltStopsTheRestOfItsChainOnly(t *testing.T) {
	outer := microproto.NewEvent[int]("test.outer")
	inner := microproto.NewEvent[int]("test.inner")
	var ran []string
	note := func(s string) microproto.Handler[int] { return func(*exec, int) { ran = append(ran, s) } }
	comp := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, outer, 0, func(x *exec, _ int) {
			ran = append(ran, "outer1")
			require.False(t, microproto.Raise(x, inner, 0))
		})
		microproto.Bind(b, outer, 0, note("outer2"))
		microproto.Bind(b, inner, 0, func(x *exec, _ int) { ran = append(ran, "inner1"); x.Halt() })
		microproto.Bind(b, inner, 0, note("inner2"))
	}))
	do(t, comp, func(x *exec) { require.True(t, microproto.Raise(x, outer, 0), "the outer chain went on") })
	require.Equal(t, []string{"outer1", "inner1", "outer2"}, ran)
}

func TestEnqueuedEventsRunAfterTheCurrentChainInOrder(t *testing.T) {
	a, b2 := microproto.NewEvent[int]("test.a"), microproto.NewEvent[string]("test.b")
	var ran []string
	comp := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, ping, 0, func(x *exec, _ string) {
			microproto.Enqueue(x, a, 1)
			microproto.Enqueue(x, b2, "two")
			microproto.Enqueue(x, a, 3)
			ran = append(ran, "ping1")
		})
		microproto.Bind(b, ping, 0, func(*exec, string) { ran = append(ran, "ping2") })
		microproto.Bind(b, a, 0, func(x *exec, n int) {
			ran = append(ran, fmt.Sprint(n))
			if n == 1 {
				microproto.Enqueue(x, a, 4)
			}
		})
		microproto.Bind(b, b2, 0, func(_ *exec, s string) { ran = append(ran, s) })
	}))
	do(t, comp, func(x *exec) {
		microproto.Raise(x, ping, "")
		ran = append(ran, "end")
	})
	require.Equal(t, []string{"ping1", "ping2", "end", "1", "two", "3", "4"}, ran)
}

func TestEventsOfOneNameAreDifferent(t *testing.T) {
	one, two := microproto.NewEvent[int]("same"), microproto.NewEvent[int]("same")
	n := 0
	comp := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, one, 0, func(*exec, int) { n++ })
		for i := range 200 { // the table of chains grows, and keeps them apart
			microproto.Bind(b, microproto.NewEvent[int](fmt.Sprint("e", i)), 0, func(*exec, int) { n += 1000 })
		}
	}))
	do(t, comp, func(x *exec) {
		microproto.Raise(x, one, 0)
		microproto.Raise(x, two, 0)
		require.True(t, microproto.Raise(x, microproto.Event[int]{}, 0), "a zero event has no handlers")
	})
	require.Equal(t, 1, n)
}

func TestBindAndUnbindInsideARunningChain(t *testing.T) {
	var ran []string
	var second, third microproto.Binding
	comp := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, ping, 0, func(x *exec, _ string) {
			ran = append(ran, "first")
			second.Unbind(x)
			second.Unbind(x) // twice does nothing
			_, err := microproto.BindNow(x, ping, 5, func(*exec, string) { ran = append(ran, "new") })
			require.NoError(t, err)
		})
		second = microproto.Bind(b, ping, 1, func(*exec, string) { ran = append(ran, "second") })
		third = microproto.Bind(b, ping, 2, func(x *exec, _ string) { ran = append(ran, "third"); third.Unbind(x) })
	}))
	do(t, comp, func(x *exec) { microproto.Raise(x, ping, "") })
	require.Equal(t, []string{"first", "third"}, ran, "unbound: not any more; bound: from the next raise on")
	ran = nil
	do(t, comp, func(x *exec) { microproto.Raise(x, ping, "") })
	require.Equal(t, []string{"first", "new"}, ran)
}

// TestBindingModel compares random binding, unbinding, halting and nesting with a model: the
// handlers bound at the raise run, except those unbound since.
func TestBindingModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type item struct {
			id       int
			priority int
			binding  microproto.Binding
		}
		var bound []item // in order of binding
		var ran, want []int
		next := 0
		var comp *microproto.Composite
		actions := map[int]func(x *exec){} // by handler: done once, while it runs
		handler := func(id int) microproto.Handler[string] {
			return func(x *exec, _ string) {
				ran = append(ran, id)
				if f := actions[id]; f != nil {
					delete(actions, id)
					f(x)
				}
			}
		}
		add := func(x *exec) {
			id, p := next, rapid.IntRange(-2, 2).Draw(rt, "priority")
			next++
			b, err := microproto.BindNow(x, ping, microproto.Priority(p), handler(id))
			require.NoError(rt, err)
			bound = append(bound, item{id, p, b})
		}
		remove := func(x *exec) {
			if len(bound) == 0 {
				return
			}
			i := rapid.IntRange(0, len(bound)-1).Draw(rt, "which")
			bound[i].binding.Unbind(x)
			bound = slices.Delete(slices.Clone(bound), i, i+1)
		}
		c, err := microproto.NewComposite(microproto.Config{Name: "model", MTU: 100}, of("p", func(*binder) {}))
		require.NoError(rt, err)
		comp = c
		require.NoError(rt, comp.Open(0))
		require.NoError(rt, comp.Do(0, func(x *exec) {
			for range rapid.IntRange(1, 12).Draw(rt, "handlers") {
				add(x)
			}
			for range rapid.IntRange(1, 6).Draw(rt, "raises") {
				ran, want = nil, nil
				snapshot := slices.Clone(bound)
				slices.SortStableFunc(snapshot, func(a, b item) int { return a.priority - b.priority })
				// One handler of the chain changes the bindings while it runs.
				actor := -1
				if len(snapshot) > 0 {
					actor = rapid.IntRange(0, len(snapshot)-1).Draw(rt, "actor")
					actions[snapshot[actor].id] = func(x *exec) {
						for range rapid.IntRange(0, 4).Draw(rt, "changes") {
							if rapid.Bool().Draw(rt, "add") {
								add(x)
							} else {
								remove(x)
							}
						}
					}
				}
				microproto.Raise(x, ping, "")
				for i, h := range snapshot {
					still := slices.ContainsFunc(bound, func(b item) bool { return b.id == h.id })
					if i <= actor || still {
						want = append(want, h.id)
					}
				}
				require.Equal(rt, want, ran)
			}
		}))
	})
}
