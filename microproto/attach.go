package microproto

import (
	"fmt"
	"slices"
)

// Attach adds a micro-protocol at the bottom of a composite, while it runs or
// before. With state s it adopts (it must be an Adopter then); without, and if
// the composite is open, its OpenSession handlers run. Refused, with nothing
// changed: a name twice, an Attach that fails, and header bytes while messages
// live (ErrLayout).
func (c *Composite) Attach(now Instant, mp MicroProtocol, s State) error {
	if err := c.begin(now); err != nil {
		return err
	}
	if _, ok := mp.(Adopter); s != nil && !ok {
		_ = c.finish()
		return fmt.Errorf("microproto: %s is handed a state and cannot adopt one", mp.Name())
	}
	if err := c.attach(mp, nil); err != nil {
		_ = c.finish()
		return err
	}
	c.start(c.lookup(mp.Name()), s)
	return c.finish()
}

// Detach takes a micro-protocol away and returns the state that it hands over.
// Its timers are cancelled, its handlers unbound, messages that it still holds
// are released. Refused, with nothing changed: an unknown name, a Detacher that
// does not want to, and header bytes while messages live (ErrLayout).
func (c *Composite) Detach(now Instant, name string) (State, error) {
	if err := c.begin(now); err != nil {
		return nil, err
	}
	s, err := c.detach(name)
	if ferr := c.finish(); err == nil {
		err = ferr
	}
	return s, err
}

// Replace detaches a micro-protocol and puts another, its successor, into its
// place. The successor adopts the predecessor's state if it can; it is an error,
// and the composite fails, if it cannot take a state that there is. The header
// may keep its layout (same attributes in the same order) or no message may live.
func (c *Composite) Replace(now Instant, name string, mp MicroProtocol) error {
	if err := c.begin(now); err != nil {
		return err
	}
	old := c.lookup(name)
	if old == nil {
		_ = c.finish()
		return c.unknown(name)
	}
	if err := c.attach(mp, old); err != nil {
		_ = c.finish()
		return err
	}
	return c.finish()
}

func (c *Composite) unknown(name string) error {
	return fmt.Errorf("microproto: composite %s has no micro-protocol %q (it has %q)", c.config.Name, name, c.Names())
}

// attach adds mp, or puts it into the place of old.
func (c *Composite) attach(mp MicroProtocol, old *attachment) error {
	name := mp.Name()
	if a := c.lookup(name); name == "" || (a != nil && a != old) {
		return fmt.Errorf("microproto: a micro-protocol named %q cannot be attached: the name is empty or taken", name)
	}
	a := &attachment{protocol: mp, label: name, order: c.orders}
	b := &Binder{c: c, to: a, replaces: old, binds: c.binds}
	attached := append(c.attached, a)
	if old != nil {
		a.order = old.order
		attached = slices.Clone(c.attached)
		attached[slices.Index(attached, old)] = a
	}
	err := mp.Attach(b)
	if err == nil {
		err = b.err
	}
	if err == nil {
		err = c.assign(a, old)
	}
	if err == nil {
		_, err = c.planLayout(attached)
	}
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	var s State
	if old != nil {
		if s, err = c.retire(old, a); err != nil {
			return err
		}
	}
	if err := c.relayout(attached); err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	c.attached = attached
	c.orders++
	if err := c.commit(b); err != nil {
		c.x.Fail(err)
		return err
	}
	if old != nil {
		return c.succeed(a, s)
	}
	return nil
}

// commit makes what a Binder gathered take effect.
func (c *Composite) commit(b *Binder) error {
	for _, cl := range b.claims {
		cl.owner = b.to
	}
	c.cells = append(c.cells, b.newCells...)
	k := 0
	for i := range maxHoldBits {
		if b.to.bits&(1<<i) != 0 {
			if i >= len(c.bitNames) {
				c.bitNames = append(c.bitNames, make([]string, i+1-len(c.bitNames))...)
			}
			c.bitNames[i] = b.bits[k]
			k++
		}
	}
	binds := b.binds
	if c.phase == phaseMade {
		c.binds, binds = b.binds, nil // they take effect together
	}
	for _, n := range binds {
		if err := n.to.insert(n.entry); err != nil {
			return fmt.Errorf("attach %s: %w", b.to.name(), err)
		}
	}
	c.findEndpoint()
	c.planAhead()
	if c.x.tracer != nil {
		c.x.trace(TraceRecord{Kind: TraceAttach, Protocol: b.to.name()})
	}
	return nil
}

func (c *Composite) findEndpoint() {
	c.endpoint = nil
	for _, a := range c.attached {
		if e, ok := a.protocol.(Endpoint); ok {
			c.endpoint = e
			return
		}
	}
}

// start lets a micro-protocol that was attached at run time begin its work.
func (c *Composite) start(a *attachment, s State) {
	if s != nil {
		_ = c.succeed(a, s)
		return
	}
	if c.phase == phaseOpen {
		c.chains.find(OpenSession.id).runOwner(&c.x, a)
	}
}

// succeed hands a predecessor's state over.
func (c *Composite) succeed(a *attachment, s State) error {
	if s == nil {
		c.start(a, nil)
		return nil
	}
	ad, ok := a.protocol.(Adopter)
	if !ok {
		err := fmt.Errorf("microproto: %s cannot adopt the state of its predecessor (%T)", a.name(), s)
		c.x.Fail(err)
		return err
	}
	c.x.cur = a
	err := ad.Adopt(&c.x, s)
	c.x.cur = &c.self
	if err != nil {
		err = fmt.Errorf("microproto: %s does not adopt the state of its predecessor: %w", a.name(), err)
		c.x.Fail(err)
	}
	return err
}

// runOwner runs one micro-protocol's handlers of an event that carries nothing.
func (ch *chain) runOwner(x *Exec, a *attachment) {
	if ch == nil {
		return
	}
	own := *ch
	own.entries = slices.DeleteFunc(slices.Clone(ch.entries), func(e entry) bool { return e.owner != a })
	run(&own, x, struct{}{})
}

func (c *Composite) detach(name string) (State, error) {
	old := c.lookup(name)
	if old == nil {
		return nil, c.unknown(name)
	}
	attached := slices.DeleteFunc(slices.Clone(c.attached), func(a *attachment) bool { return a == old })
	if _, err := c.planLayout(attached); err != nil {
		return nil, fmt.Errorf("detach %s: %w", name, err)
	}
	s, err := c.retire(old, nil)
	if err != nil {
		return nil, err
	}
	c.attached = attached
	if err := c.relayout(attached); err != nil {
		// Messages came to life in Detach, after the check.
		c.x.Fail(err)
		return nil, fmt.Errorf("detach %s: %w", name, err)
	}
	c.findEndpoint()
	c.planAhead()
	return s, nil
}

// retire ends a micro-protocol: its own Detach, then everything it may have left.
// What its successor, if there is one, has taken over stays.
func (c *Composite) retire(old, successor *attachment) (State, error) {
	var s State
	if d, ok := old.protocol.(Detacher); ok {
		c.x.cur = old
		var err error
		s, err = d.Detach(&c.x)
		c.x.cur = &c.self
		if err != nil {
			return nil, fmt.Errorf("detach %s: %w", old.name(), err)
		}
	}
	c.timers.removeIf(func(t *timer) bool { return t.owner == old })
	for i := range c.chains.n {
		c.chains.at(i).unbindOwner(old)
	}
	gone := old.locals()
	if successor != nil {
		gone &^= successor.locals()
	}
	for _, m := range c.alive() {
		m.has &^= gone
		if m.hold&old.bits != 0 {
			c.x.Release(m, old.bits)
		}
	}
	for _, cl := range c.cells {
		if cl.owner == old {
			cl.owner = nil
		}
	}
	if c.x.tracer != nil {
		c.x.trace(TraceRecord{Kind: TraceDetach, Protocol: old.name()})
	}
	return s, nil
}

// locals is the set of a micro-protocol's local attributes, by index.
func (a *attachment) locals() (set uint32) {
	for _, p := range a.places {
		if !p.wire {
			set |= 1 << p.offset
		}
	}
	return set
}
