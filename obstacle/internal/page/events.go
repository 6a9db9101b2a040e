package page

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
)

// Source supplies what the page shows.
type Source interface {
	Next(c *monitor.Cursor) monitor.Increment
}

// Intervals between two increments. In a run of many peers each takes more time to draw.
const (
	every     = 500 * time.Millisecond
	everyMany = 2 * time.Second
	manyPeers = 256
	writeTime = 10 * time.Second // bounds the time of one write
	idleTime  = 15 * time.Second // between two writes, so that a lost browser is noticed
)

// events sends increments as server-sent events, the first one with everything.
type events struct {
	source  Source
	closing *Closing
}

func (e events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.closing.enter() {
		return
	}
	defer e.closing.streams.Done()
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // that of the request, which is over
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	var cursor monitor.Cursor
	interval, silent := every, time.Duration(0)
	for over := false; ; {
		i := e.source.Next(&cursor)
		for _, c := range i.Runs {
			if len(c.Peers) > manyPeers {
				interval = everyMany
			}
		}
		text := []byte(": nothing new\n\n")
		if !i.Empty() {
			body, err := json.Marshal(i)
			if err != nil {
				return
			}
			text = append(append([]byte("data: "), body...), "\n\n"...)
		}
		if over {
			text = append(text, "event: end\ndata:\n\n"...)
		}
		if !i.Empty() || over || silent >= idleTime {
			silent = 0
			_ = out.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := w.Write(text); err != nil || out.Flush() != nil {
				return
			}
		}
		if over {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-e.closing.done:
			over = true
		case <-time.After(interval):
			silent += interval
		}
	}
}
