package cli

import (
	"os"
	"os/signal"
	"sync"
)

// traceSignal is the signal that has traces written. It ends no process of the program, with or without traces.
var traceSignal signalHub

// signalHub passes traceSignals on to functions.
type signalHub struct {
	once    sync.Once
	arrived chan os.Signal

	mu        sync.Mutex
	listeners map[*func()]bool
}

// install catches the signals from now on.
func (h *signalHub) install() {
	h.once.Do(func() {
		h.arrived, h.listeners = make(chan os.Signal, 1), map[*func()]bool{}
		h.notify()
		go func() {
			for range h.arrived {
				h.mu.Lock()
				for f := range h.listeners {
					(*f)()
				}
				h.mu.Unlock()
			}
		}()
	})
}

func (h *signalHub) notify() {
	if all := traceSignals(); len(all) > 0 { // Notify would take all
		signal.Notify(h.arrived, all...)
	}
}

// listen calls f at every signal until stop is called.
func (h *signalHub) listen(f func()) (stop func()) {
	h.install()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[&f] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners, &f)
	}
}

// starting starts a process that ignores the signals until it installs its handlers. A child inherits ignored signals,
// but no handlers.
func (h *signalHub) starting(start func() error) error {
	h.install()
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := traceSignals(); len(all) > 0 {
		signal.Ignore(all...)
	}
	defer h.notify()
	return start()
}
