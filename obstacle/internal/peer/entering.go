package peer

import (
	"errors"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// entry is how far a peer has come with entering an epoch. Meanwhile an asynchronous run of the epoch before goes on. If a
// newer epoch begins, the job in progress ends first.
//
//	state       event                              next
//	leaving     the values are kept                opening
//	opening     the endpoint is open               unassigned
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
	resumable
	resuming
	repairing
	connecting
	queued
	entered
)

// entering is the newest epoch, and the one that the peer enters.
type entering struct {
	epoch    int // the newest
	open     int // whose endpoint is open, or being opened
	entry    entry
	entryJob int       // number of the job in progress; 0: none
	numbers  int       // of jobs that were begun
	again    bool      // the endpoint could not be opened at the first attempt
	work     *assigned // the newest that was not accepted; nil: none
	accepted assigned
}

// assigned is the work of a peer in an epoch.
type assigned struct {
	epoch   int
	box     problem.Box // of the peer at its start
	resumes bool        // from a kept iterate, or from the beginning
	repairs bool        // the block, if the peer has no values of its box
	err     error       // the work is invalid
}

// enterBy begins a job.
func (m *member) enterBy(e entry, j job) {
	m.numbers++
	m.entry, m.entryJob = e, m.numbers
	m.add(do{j, m.numbers, m.open})
}

// epochBegins leaves the epoch before, once nothing is in progress in it.
func (m *member) epochBegins(e *rendezvous.Epoch) {
	if e.Epoch <= m.epoch || m.lost != nil {
		return
	}
	m.epoch = e.Epoch
	m.add(supersede{})
	switch {
	case m.task == relaxed, m.task == answering, m.halts:
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
func (m *member) leave() {
	if m.entry != entered && m.entry != leaving {
		m.add(abort{m.open})
	}
	m.entry = leaving
}

// reopen opens the endpoint of the newest epoch.
func (m *member) reopen() {
	m.open = m.epoch
	m.enterBy(opening, toOpen)
}

// accept accepts the newest work if the peer waits for it.
func (m *member) accept() {
	w := m.work
	if w == nil || m.entry != unassigned || m.lost != nil {
		return
	}
	m.work = nil
	switch {
	case w.err != nil:
		m.fail(w.err)
	case w.epoch != m.open:
	default:
		m.accepted = *w
		m.add(accept{})
		if !w.resumes {
			m.repair()
			return
		}
		m.entry = resumable
		m.abandon() // it must not keep iterates that follow the one from which this epoch goes on
	}
}

// repair repairs the block if the peer has no values for it, and else connects to the neighbours.
func (m *member) repair() {
	if m.accepted.repairs && m.held != m.accepted.box {
		m.enterBy(repairing, toRepair)
		return
	}
	m.enterBy(connecting, toConnect)
}

func (m *member) entryEnded(j job, err error) {
	m.entryJob = 0
	switch {
	case m.over, m.lost != nil: // the end of the connection follows
	case m.open < m.epoch:
		m.leave()
	case err != nil && j == toOpen && !m.again && !errors.Is(err, errLauncherLeft):
		m.again, m.entry = true, leaving // there may be too few ports for two endpoints
		m.abandon()
	case err != nil:
		m.fail(err)
	case j == toOpen:
		m.again, m.entry = false, unassigned
		m.accept()
	case j == toResume:
		m.repair()
	case j == toRepair:
		m.enterBy(connecting, toConnect)
	case j == toConnect:
		m.entry = queued
		m.abandon()
	}
}

// enter begins to work in the epoch.
func (m *member) enter() {
	m.entry, m.at, m.abandoned, m.surrendered = entered, m.open, false, false
	m.workBy(preparing, toPrepare)
}
