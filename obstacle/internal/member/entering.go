package member

import (
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// entry is how far a peer has come with entering an epoch. Meanwhile an asynchronous run of the epoch before goes on. If a
// newer epoch begins, the job in progress ends first.
//
//	state       event                              next
//	leaving     the values are kept                opening
//	opening     the endpoint is open               opened
//	opened      no end of a time step is sent      reporting
//	reporting   the leader knows the endpoint      unassigned
//	opening     it cannot be opened                leaving, once, and without the relaxation
//	unassigned  work without a kept iterate        repairing or connecting
//	unassigned  work with a kept iterate           resumable
//	resumable   the values are kept                resuming
//	resuming    the values are those of the work   repairing or connecting
//	repairing   the block is repaired              connecting
//	connecting  the neighbours are connected       queued
//	queued      the work of the epoch before ends  entered
//	any         a newer epoch                      leaving
type entry int

const (
	unassigned entry = iota // the work of the epoch has not arrived
	leaving
	opening
	opened
	reporting
	resumable
	resuming
	repairing
	connecting
	queued
	entered
)

// entering is the newest epoch, and the one that the peer enters.
type entering struct {
	Epoch    int // the newest
	open     int // whose endpoint is open, or being opened
	entry    entry
	entryJob int       // number of the job in progress; 0: none
	numbers  int       // of jobs that were begun
	again    bool      // the endpoint could not be opened at the first attempt
	work     *Assigned // the newest that was not accepted; nil: none
	arrived  int       // connection that has brought it
	accepted Assigned
	workOn   int // connection that has brought it
}

// Assigned is the work of a peer in an epoch.
type Assigned struct {
	Epoch   int
	Box     problem.Box // of the peer at its start
	Resumes bool        // from a kept iterate, or from the beginning
	Repairs bool        // the block, if the peer has no values of its box
	InTime  bool        // the problem has time steps
	After   int         // number of the last time step before the work
	Err     error       // the work is invalid
}

// enterBy begins a job.
func (m *Member) enterBy(e entry, j Job) {
	m.numbers++
	m.entry, m.entryJob = e, m.numbers
	m.add(Do{j, m.numbers, m.open})
}

// epochBegins leaves the epoch before, once nothing is in progress in it.
func (m *Member) epochBegins(e *rendezvous.Epoch) {
	if e.Epoch <= m.Epoch || m.Lost != nil {
		return
	}
	m.Epoch, m.suspected = e.Epoch, nil
	m.add(Supersede{})
	switch {
	case m.task == beginning, m.task == unstarted, m.task == relaxed, m.task == answering, m.Halts:
		m.abandon()
	case m.task != idle:
		m.debug("relaxing on until the next epoch begins", "lost", e.Lost)
	}
	if m.entryJob == 0 {
		m.leave()
	}
}

// leave leaves the epoch that the peer enters. The leader waits for the repair of the blocks of lost peers before it
// gives work to a peer that relaxes on.
func (m *Member) leave() {
	if m.entry != entered && m.entry != leaving {
		m.add(Abort{m.open})
	}
	m.entry, m.on = leaving, 0 // what follows the report of the next endpoint belongs to the new epoch
}

// reopen opens the endpoint of the newest epoch.
func (m *Member) reopen() {
	m.open = m.Epoch
	m.enterBy(opening, ToOpen)
}

// accept accepts the newest work if the peer waits for it.
func (m *Member) accept() {
	w := m.work
	if w == nil || m.entry != unassigned || m.Lost != nil {
		return
	}
	m.work = nil
	switch {
	case w.Err != nil:
		m.fail(w.Err)
	case w.Epoch != m.open:
	default:
		m.accepted, m.workOn = *w, m.arrived
		m.add(Accept{})
		if !w.Resumes {
			m.repair()
			return
		}
		m.entry = resumable
		m.abandon() // it must not keep iterates that follow the one from which this epoch goes on
	}
}

// repair repairs the block if the peer has no values for it, and else connects to the neighbours.
func (m *Member) repair() {
	if m.accepted.Repairs && m.Held != m.accepted.Box {
		m.enterBy(repairing, ToRepair)
		return
	}
	m.enterBy(connecting, ToConnect)
}

func (m *Member) entryEnded(j Job, err error) {
	m.entryJob = 0
	switch {
	case m.Over, m.Lost != nil: // the end of the connection follows
	case m.open < m.Epoch:
		m.leave()
	case err != nil && j == ToOpen && !m.again:
		m.again, m.entry = true, leaving // there may be too few ports for two endpoints
		m.abandon()
	case err != nil:
		m.failBy(err)
	case j == ToOpen:
		m.again, m.entry = false, opened
	case j == ToReport:
		m.entry = unassigned
		m.accept()
	case j == ToResume:
		m.repair()
	case j == ToRepair:
		m.enterBy(connecting, ToConnect)
	case j == ToConnect:
		m.entry = queued
		m.abandon()
	}
}

// enter begins to work in the epoch.
func (m *Member) enter() {
	m.entry, m.at, m.abandoned, m.Surrendered = entered, m.open, false, false
	m.workBy(preparing, ToPrepare)
}
