package ib

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// ErrPort reports that the link's port is not active.
var ErrPort = errors.New("ib: the port is down")

// Watch implements microproto.Connected.
func (l *Link) Watch(f func(microproto.LinkEvent)) { l.events.setWatcher(f) }

// eventNotifier calls the watcher from another goroutine, so that the reporting goroutine may hold
// locks. Only the newest event of each peer is queued.
type eventNotifier struct {
	mu      sync.Mutex
	watcher func(microproto.LinkEvent)
	queued  []microproto.LinkEvent
	running bool
	closed  bool
}

func (n *eventNotifier) setWatcher(f func(microproto.LinkEvent)) {
	n.mu.Lock()
	n.watcher = f
	n.mu.Unlock()
}

func (n *eventNotifier) notify(e microproto.LinkEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watcher == nil || n.closed {
		return
	}
	n.queued = slices.DeleteFunc(n.queued, func(q microproto.LinkEvent) bool { return q.Peer == e.Peer })
	n.queued = append(n.queued, e)
	if !n.running {
		n.running = true
		go n.run()
	}
}

// run passes the queued events on.
func (n *eventNotifier) run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.queued) > 0 && !n.closed {
		e, f := n.queued[0], n.watcher
		n.queued = slices.Delete(n.queued, 0, 1)
		n.mu.Unlock()
		f(e)
		n.mu.Lock()
	}
	n.running = false
}

func (n *eventNotifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
}

// watchDevice handles the device's events until the device is closed.
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
					q.peer.fail(fmt.Errorf("%v queue pair: the adapter reports a fatal error", q.transport))
				}
			}
		}
		l.mu.Unlock()
		l.callWritableIfRoom()
	}
}

// drainCompletions handles all completions. One may tell why a pair failed, which the event of
// the failure does not.
func (l *Link) drainCompletions() {
	l.rx.Lock()
	l.poll()
	l.rx.Unlock()
	l.mu.Lock()
	l.reap()
	if !l.closed.Load() {
		l.pump()
	}
	l.mu.Unlock()
	l.wakeReceiver() // to deliver the arrivals
}

// markDown takes all connections down. mu is held.
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
	l.events.notify(microproto.LinkEvent{Err: err})
	l.log("%v", err)
}

// markUp handles the return of the port. New offers then make new connections.
func (l *Link) markUp() {
	if l.downErr == nil || !errors.Is(l.downErr, ErrPort) {
		return
	}
	if err := l.port.read(l.device, &l.config); err != nil {
		l.log("%v", err)
		return
	}
	l.port.describe(&l.self)
	l.downErr = nil
	l.events.notify(microproto.LinkEvent{Up: true})
	l.log("port %d of %s is active again", l.port.number, l.device.Name())
}
