package peer

import (
	"errors"
)

// task is what a peer does in the epoch in which it works. If the run fails meanwhile, blocking calls end, and the peer
// sends the values that it has.
//
//	state       event                                    next
//	idle        an epoch is entered                      preparing
//	preparing   the sessions are open                    announcing
//	announcing  the leader knows, before the start       unstarted
//	announcing  the leader knows                         relaxing
//	unstarted   the run starts                           relaxing
//	relaxing    the relaxation ends by itself            relaxed
//	relaxing    it fails, or in a former epoch           saving
//	relaxed     other peers of the process end, too      saving
//	saving     the values are kept                      answering
//	answering   the leader ends the run                  idle
//	answering   another process leads the run            answering
//	any         the epoch is abandoned                   idle, once the values are kept
type task int

const (
	idle task = iota
	preparing
	announcing
	unstarted
	relaxing
	relaxed
	saving
	answering
)

// working is the epoch in which a peer works.
type working struct {
	at          int // the epoch
	task        task
	taskJob     int  // number of the job in progress; 0: none
	abandoned   bool // a newer epoch, or the end of this peer, waits for its end
	surrendered bool // the answer is of a run that failed between two epochs
	drained     int  // connection on which all ends of time steps were sent, + 1
	answered    int  // connection on which the answer was sent, + 1
	sending     bool // the answer is being sent
}

// workBy begins a job.
func (m *member) workBy(t task, j job) {
	m.numbers++
	m.task, m.taskJob = t, m.numbers
	m.add(do{j, m.numbers, m.at})
}

func (m *member) relax() { m.workBy(relaxing, toRelax) }
func (m *member) keep()  { m.workBy(saving, toKeep) }

// yields reports whether the peer has begun to end the relaxation, whose values are not kept yet.
func (m *member) yields() bool {
	return m.abandoned && (m.task == relaxing || m.task == relaxed || m.task == saving)
}

// abandon ends the work in progress as soon as its values are kept.
func (m *member) abandon() {
	m.abandoned = true
	switch m.task {
	case unstarted:
		m.quit()
	case relaxing:
		m.add(abandon{})
	case relaxed:
		m.keep()
	case answering:
		if !m.sending && !m.surrendered {
			m.quit()
		}
	}
}

// quit ends the work in the epoch.
func (m *member) quit() {
	m.add(quit{m.at})
	m.task, m.taskJob = idle, 0
}

func (m *member) taskEnded(j job, err error) {
	m.taskJob = 0
	switch j {
	case toPrepare:
		m.prepared(err)
	case toAnnounce:
		m.announced(err)
	case toRelax:
		m.relaxationEnded(err)
	case toAwait:
		m.keep()
	case toKeep:
		m.task, m.drained, m.answered = answering, 0, 0
		m.proceed()
	case toDrain:
		if err == nil {
			m.drained = m.conn + 1
			m.deliver()
		}
	case toAnswer:
		m.sending = false
		m.proceed()
	}
}

func (m *member) prepared(err error) {
	switch {
	case err == nil && !m.abandoned:
		m.workBy(announcing, toAnnounce)
		return
	case err == nil, m.at < m.epoch && !m.over && !m.cutOff, m.lost != nil && !m.held.Empty():
	case m.failure == nil:
		m.failure = err
	}
	m.quit()
}

func (m *member) announced(err error) {
	switch {
	case err != nil && !errors.Is(err, errNextEpoch):
		m.failure = err
		m.quit()
	case err != nil, m.abandoned:
		m.quit()
	case m.at > 0 || m.started: // it comes before the end of the run or its failure, and the leader then awaits a block
		m.relax()
	case m.lost != nil:
		m.failure = errors.New(m.lost.Why)
		m.quit()
	case m.cutOff:
		m.quit()
	default:
		m.task = unstarted
	}
}

func (m *member) relaxationEnded(err error) {
	switch {
	case errors.Is(err, errNextEpoch), m.cutOff:
		m.quit()
	case err == nil && m.lost == nil && !m.superseded():
		m.workBy(relaxed, toAwait) // what follows takes the processor from peers that pass the verdict on
	default:
		m.keep()
	}
}

// superseded reports whether the peer works in an epoch that is not the newest, or that it leaves.
func (m *member) superseded() bool { return m.abandoned || m.at < m.epoch }

// proceed delivers the answer, or ends the work after it.
func (m *member) proceed() {
	switch {
	case !m.surrendered && m.superseded():
		m.quit()
	case m.cutOff:
		m.afterAnswer()
	default:
		m.deliver()
	}
}

// deliver sends the answer to the leader, after the ends of all time steps, unless it has it. If the run has failed, it
// does not wait for these.
func (m *member) deliver() {
	to := m.conn + 1
	switch {
	case m.sending || m.answered == to || m.contact != connected:
	case m.drained == to || m.lost != nil:
		m.sending, m.answered = true, to
		m.workBy(answering, toAnswer)
	default:
		m.workBy(answering, toDrain)
	}
}

// surrender delivers the values that this peer has when the run has failed between two epochs.
func (m *member) surrender() {
	m.at, m.surrendered, m.task, m.answered = m.epoch, true, answering, 0
	m.add(supersede{})
	m.add(surrender{m.epoch, *m.lost})
	m.deliver()
}

// afterAnswer ends the part of this peer in the run, after its answer, when nothing more comes from the leader.
func (m *member) afterAnswer() {
	switch {
	case m.lost != nil:
		m.outcome = reported
	case m.bye == nil:
		m.failure, m.outcome = errLauncherLeft, failed
	default:
		m.outcome = finished
	}
}
