package member

import (
	"errors"
	"fmt"
	"time"
)

// task is what a peer does in the epoch in which it works. If the run fails meanwhile, blocking calls end, and the peer
// sends the values that it has.
//
//	state       event                                    next
//	idle        an epoch is entered                      preparing
//	preparing   the sessions are open                    announcing, or beginning with time steps
//	beginning   no earlier end is needed                 announcing
//	announcing  the leader knows, before the start       unstarted
//	announcing  the leader knows                         relaxing
//	unstarted   the run starts                           relaxing
//	relaxing    the relaxation ends by itself            relaxed
//	relaxing    it fails, or in a former epoch           saving
//	relaxed     other peers of the process end, too      saving
//	saving      the values are kept                      answering
//	answering   the leader ends the run                  idle
//	answering   another process leads the run            answering
//	any         the epoch is abandoned                   idle, once the values are kept
type task int

const (
	idle task = iota
	preparing
	beginning
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
	taskJob     int           // number of the job in progress; 0: none
	abandoned   bool          // a newer epoch, or the end of this peer, waits for its end
	Surrendered bool          // the answer is of a run that failed between two epochs
	answered    int           // connection on which the answer was sent, + 1
	sending     bool          // the answer is being sent
	suspected   error         // of the epoch, which a loss may have caused; nil: none
	until       time.Duration // a newer epoch is awaited for it
	overdue     time.Duration // when the relaxation, which is to end, must have ended; 0: it may go on
}

// workBy begins a job.
func (m *Member) workBy(t task, j Job) {
	m.numbers++
	m.task, m.taskJob = t, m.numbers
	m.add(Do{j, m.numbers, m.at})
}

func (m *Member) relax() { m.workBy(relaxing, ToRelax) }
func (m *Member) keep()  { m.workBy(saving, ToKeep) }

// yields reports whether the peer has begun to end the relaxation, whose values are not kept yet.
func (m *Member) yields() bool {
	return m.abandoned && (m.task == relaxing || m.task == relaxed || m.task == saving)
}

// abandon ends the work in progress as soon as its values are kept.
func (m *Member) abandon() {
	m.abandoned = true
	switch m.task {
	case beginning, unstarted:
		m.quit()
	case relaxing:
		m.add(Abandon{})
	case relaxed:
		m.keep()
	case answering:
		if !m.sending && !m.Surrendered {
			m.quit()
		}
	}
}

// boundRelaxation ends the part of this peer in the run if a relaxation that is to end, which blocking calls do not delay any more, does
// not for the timeout of a peer: then the user's code does not return. The job is left behind.
func (m *Member) boundRelaxation() {
	switch toEnd := m.abandoned || m.cutOff || m.Lost != nil; {
	case m.task != relaxing || !toEnd:
		m.overdue = 0
	case m.overdue == 0:
		m.overdue = m.now + m.timeout
	case m.now >= m.overdue:
		m.Failure, m.Outcome = fmt.Errorf("%w: this process was to end its relaxation %v ago", ErrRelaxes, m.timeout), Failed
	}
}

// quit ends the work in the epoch.
func (m *Member) quit() {
	m.add(Quit{m.at})
	m.task, m.taskJob = idle, 0
}

func (m *Member) taskEnded(j Job, err error) {
	m.taskJob = 0
	switch j {
	case ToPrepare:
		m.prepared(err)
	case ToAnnounce:
		m.announced(err)
	case ToRelax:
		m.relaxationEnded(err)
	case ToAwait:
		m.keep()
	case ToKeep:
		m.task, m.answered = answering, 0
		m.proceed()
	case ToAnswer:
		m.sending = false
		m.proceed()
	}
}

func (m *Member) prepared(err error) {
	switch {
	case err == nil && !m.abandoned && !m.accepted.InTime:
		m.workBy(announcing, ToAnnounce)
		return
	case err == nil && !m.abandoned && m.Lost == nil && !m.cutOff:
		m.task = beginning
		return
	case err == nil, m.at < m.Epoch && !m.Over && !m.cutOff, m.Lost != nil && !m.Held.Empty():
	default:
		m.failBy(err)
	}
	m.quit()
}

// lossTime bounds the wait for a newer epoch when this peer has lost another one, which the leader may notice later.
const lossTime = time.Second

// failBy ends the part of this peer in the run, unless the error of an epoch is a consequence of the loss of another peer, for
// which a newer epoch begins.
func (m *Member) failBy(err error) {
	if m.recovers && m.Loss && m.Lost == nil && !m.cutOff {
		m.suspected, m.until = err, m.now+lossTime
		return
	}
	m.fail(err)
}

func (m *Member) announced(err error) {
	switch {
	case err != nil:
		m.Failure = err
		m.quit()
	case m.abandoned:
		m.quit()
	case m.Started: // it comes before the end of the run or its failure, and the leader then awaits a block
		m.relax()
	case m.Lost != nil, m.cutOff, m.at < m.Epoch:
		m.quit()
	default:
		m.task = unstarted
	}
}

func (m *Member) relaxationEnded(err error) {
	switch {
	case errors.Is(err, ErrNextEpoch), m.cutOff:
		m.quit()
	case err == nil && m.Lost == nil && !m.superseded():
		m.workBy(relaxed, ToAwait) // what follows takes the processor from peers that pass the verdict on
	default:
		m.keep()
	}
}

// superseded reports whether the peer works in an epoch that is not the newest, or that it leaves.
func (m *Member) superseded() bool { return m.abandoned || m.at < m.Epoch }

// proceed delivers the answer, or ends the work after it.
func (m *Member) proceed() {
	switch {
	case !m.Surrendered && m.superseded():
		m.quit()
	case m.cutOff:
		m.afterAnswer()
	default:
		m.deliver()
	}
}

// deliver sends the answer to the leader, after the ends of all time steps, unless it has it. If the run has failed, it
// does not wait for these.
func (m *Member) deliver() {
	to := m.conn + 1
	if m.sending || m.answered == to || m.contact != connected || m.Lost == nil && !m.sent() {
		return
	}
	m.sending, m.answered = true, to
	m.workBy(answering, ToAnswer)
}

// surrender delivers the values that this peer has when the run has failed between two epochs.
func (m *Member) surrender() {
	m.at, m.Surrendered, m.task, m.answered = m.Epoch, true, answering, 0
	m.add(Supersede{})
	m.add(Surrender{m.Epoch, *m.Lost})
	m.deliver()
}

// afterAnswer ends the part of this peer in the run, after its answer, when nothing more comes from the leader.
func (m *Member) afterAnswer() {
	switch {
	case m.Lost != nil:
		m.Outcome = Reported
	case m.Bye == nil:
		m.Failure, m.Outcome = ErrLauncherLeft, Failed
	default:
		m.Outcome = Finished
	}
}
