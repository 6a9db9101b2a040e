package simulate

import "time"

// backlog holds received flights while the protocol has used its share of the core on which its
// machine also relaxes. Otherwise a sender that never waits could leave a receiver no time to relax,
// and an operating system that schedules both threads fairly prevents that: arrivals fill the
// socket's queue, and the rest is lost at no cost.
type backlog struct {
	flights []*flight
	debt    time.Duration // time that the protocol took from the relaxing thread beyond an equal share
}

// fairSlice bounds how far the protocol may be ahead of its share. Linux lets a thread run about
// that long before another thread that is ready: 0.7 ms on one processor, 2.8 ms on eight (base
// slice, kernel/sched/fair.c).
const fairSlice = 3 * time.Millisecond

// protocolUsed counts time that the protocol takes from the relaxing thread.
func (b *backlog) protocolUsed(m *machine, cost time.Duration) {
	if m.contended() {
		b.debt += cost
	}
}

// threadUsed counts time in which the relaxing thread relaxes or sends.
func (b *backlog) threadUsed(d time.Duration) { b.debt = max(0, b.debt-d) }

// contended reports whether the relaxing thread needs the core that the protocol runs on.
func (m *machine) contended() bool { return m.shared && m.host.Busy() > m.now }

// queued appends a flight to the backlog if it must wait. It returns false if the flight can be
// received at once.
func (m *machine) queued(f *flight) bool {
	b := &m.backlog
	if len(b.flights) == 0 && !m.behind() {
		return false
	}
	b.flights = append(b.flights, f)
	if len(b.flights) == 1 {
		m.scheduleBacklog()
	}
	return true
}

// protocolLag is how far a core of the protocol may be behind before received flights wait, and the relaxing thread
// with a message that has a cost of its own.
const protocolLag = 100 * time.Microsecond

// behind reports whether the protocol must wait: the relaxing thread is owed more than a slice, or
// the protocol's own core has enough work for now.
func (m *machine) behind() bool {
	if m.shared {
		return m.backlog.debt > fairSlice && m.contended()
	}
	return m.protocol.Sub(m.now) > protocolLag
}

// scheduleBacklog schedules the next call of drainBacklog, after the relaxing thread has had what it
// is owed.
func (m *machine) scheduleBacklog() {
	at := max(m.host.Busy(), m.now.Add(m.backlog.debt-fairSlice))
	if !m.shared {
		at = m.protocol.Add(-protocolLag)
	}
	m.schedule(at+1, evBacklog, nil)
}

// batch is the number of frames that the protocol receives before it sends again (see
// driver.Node.Pump and ether.Link.Recv).
const batch = 64

// drainBacklog receives flights from the backlog: as many as there is time for, or one batch if the
// protocol has a core of its own. After a batch a send has its turn, so a machine that receives more
// than it can handle sends less.
func (m *machine) drainBacklog() {
	b := &m.backlog
	taken, frames := 0, 0
	for taken < len(b.flights) && (!m.behind() || frames < batch && !m.shared) {
		f := b.flights[taken]
		taken++
		frames += int(f.count)
		f.first, f.last = max(f.first, m.now), max(f.last, m.now)
		m.receive(f)
	}
	left := copy(b.flights, b.flights[taken:])
	clear(b.flights[left:])
	b.flights = b.flights[:left]
	if left > 0 {
		m.scheduleBacklog()
	}
}
