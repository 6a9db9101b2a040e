package simulate

import "time"

// backlog is what has come and waits because the protocol has had its share of the core on
// which its machine relaxes too. Who sends without waiting could otherwise leave a receiver no
// time to relax, which an operating system that is fair to both threads does not let happen:
// what comes meanwhile fills the socket's queue, and the rest is lost at no cost.
type backlog struct {
	flights []*flight
	debt    time.Duration // that the protocol has taken from the relaxing thread beyond an equal share
}

// slice is how far the protocol may be ahead of its share: about what Linux lets a thread run
// before another that is ready goes on, 0.7 ms for one processor, 2.8 for eight (base slice;
// Linux, kernel/sched/fair.c).
const fairSlice = 3 * time.Millisecond

// steals counts what the protocol takes from the relaxing thread.
func (b *backlog) protocolUsed(m *machine, cost time.Duration) {
	if m.contended() {
		b.debt += cost
	}
}

// works counts what the relaxing thread does itself: it relaxes, or sends.
func (b *backlog) threadUsed(d time.Duration) { b.debt = max(0, b.debt-d) }

// contended tells that the relaxing thread wants the core that the protocol runs on.
func (m *machine) contended() bool { return m.shared && m.host.Busy() > m.now }

// put has a flight wait if it must; false: it can be taken at once.
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

// behind tells that the relaxing thread is owed more than a slice, or that the protocol's own
// core has enough to do for now.
func (m *machine) behind() bool {
	if m.shared {
		return m.backlog.debt > fairSlice && m.contended()
	}
	return m.protocol.Sub(m.now) > protocolLag
}

// later plans when to look at the backlog: what is owed is relaxed first.
func (m *machine) scheduleBacklog() {
	at := max(m.host.Busy(), m.now.Add(m.backlog.debt-fairSlice))
	if !m.shared {
		at = m.protocol.Add(-protocolLag)
	}
	m.schedule(at+1, evBacklog, nil)
}

// batch is how many frames the protocol takes in before it looks whether something is to be sent
// (driver.Node.Pump, ether.Link.Recv).
const batch = 64

// catchUp takes what waits: as far as there is time for it, or on a core of the protocol's a
// batch, after which a send has its turn. So whoever is given more than he can take in sends less.
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
