package ib

import (
	"errors"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// ErrPort tells that the link's port is not active.
var ErrPort = errors.New("ib: the port is down")

// Watch implements microproto.Connected.
func (l *Link) Watch(f func(microproto.LinkEvent)) { l.events.setWatcher(f) }

// tell queues an event. From anywhere.
func (l *Link) notify(e microproto.LinkEvent) { l.events.put(e) }

// herald tells events from a goroutine of its own, so that whoever notices one may hold
// locks. Of one peer only the newest waits.
type eventNotifier struct {
	mu      sync.Mutex
	more    sync.Cond
	watcher func(microproto.LinkEvent)
	queued  []microproto.LinkEvent
	running bool
	closed  bool
}

func (h *eventNotifier) init() { h.more.L = &h.mu }

func (h *eventNotifier) setWatcher(f func(microproto.LinkEvent)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watcher = f
	if !h.running && !h.closed {
		h.running = true
		go h.run()
	}
}

func (h *eventNotifier) put(e microproto.LinkEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watcher == nil {
		return
	}
	for i := range h.queued {
		if h.queued[i].Peer == e.Peer {
			h.queued = append(h.queued[:i], h.queued[i+1:]...)
			break
		}
	}
	h.queued = append(h.queued, e)
	h.more.Signal()
}

func (h *eventNotifier) run() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for len(h.queued) == 0 && !h.closed {
			h.more.Wait()
		}
		if h.closed {
			return
		}
		e, f := h.queued[0], h.watcher
		h.queued = append(h.queued[:0], h.queued[1:]...)
		h.mu.Unlock()
		f(e)
		h.mu.Lock()
	}
}

func (h *eventNotifier) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.more.Broadcast()
}

// watchDevice acts on what happens to the device, until it is closed.
func (l *Link) watchDevice() {
	for {
		e, err := l.device.NextEvent()
		if err != nil {
			return
		}
		if e.Kind == verbs.EventPairFatal {
			l.drainCompletions()
		}
		l.mu.Lock()
		switch {
		case l.closed.Load():
		case e.Kind == verbs.EventDeviceFatal:
			l.markDown(fmt.Errorf("ib: device %s: %w", l.device.Name(), verbs.ErrGone))
		case e.Kind == verbs.EventPortError && e.Port == l.port.number:
			l.markDown(fmt.Errorf("%w: port %d of %s", ErrPort, e.Port, l.device.Name()))
		case e.Kind == verbs.EventPortActive && e.Port == l.port.number:
			l.markUp()
		case e.Kind == verbs.EventPairFatal:
			for _, q := range l.pairs {
				if q != nil && q.number == e.Pair {
					q.peer.fail(fmt.Errorf("%v queue pair: the adapter tells of a fatal error", q.transport))
				}
			}
		}
		l.mu.Unlock()
		l.callWritableIfRoom()
	}
}

// askQueues takes in what has completed: there may be the reason why a pair failed,
// which the event does not tell.
func (l *Link) drainCompletions() {
	l.rx.Lock()
	if !l.closed.Load() {
		l.poll()
	}
	l.rx.Unlock()
	l.mu.Lock()
	if !l.closed.Load() {
		l.reap()
		l.pump()
	}
	l.mu.Unlock()
	l.wakeReceiver() // who waits looks at what has come
}

// down takes all connections down. mu is held.
func (l *Link) markDown(err error) {
	if l.downErr != nil {
		return
	}
	l.downErr = err
	for _, p := range l.peers {
		if p != nil && p.state == peerUp {
			p.fail(err)
		}
	}
	l.notify(microproto.LinkEvent{Err: err})
	l.log("%v", err)
}

// up: the port is active again. Connections are made by new offers.
func (l *Link) markUp() {
	if l.downErr == nil || !errors.Is(l.downErr, ErrPort) {
		return
	}
	if err := l.port.read(l.device, &l.config); err != nil {
		l.log("%v", err)
		return
	}
	l.self.lid, l.self.gid, l.self.subnet, l.self.mtu = l.port.lid, l.port.gid, l.port.subnet, l.port.mtu
	l.downErr = nil
	l.notify(microproto.LinkEvent{Up: true})
	l.log("port %d of %s is active again", l.port.number, l.device.Name())
}
