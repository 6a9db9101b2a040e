// Package tracefile writes every event of every composite of a peer to a file. A line holds the seconds since the start
// of the node, the session, the nesting and the event.
package tracefile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// File is a tracer that is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	err  error // the first
}

// Create creates the file or truncates it.
func Create(name string) (*File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return &File{file: f, out: bufio.NewWriterSize(f, 1<<18)}, nil
}

// Trace implements microproto.Tracer.
func (f *File) Trace(now microproto.Instant, r microproto.TraceRecord) { f.line(now, "-", r) }

// Session implements p2psap.SessionTracer: the lines of a session hold its name after the time.
func (f *File) Session(name string) microproto.Tracer { return session{f, name} }

type session struct {
	file *File
	name string
}

func (s session) Trace(now microproto.Instant, r microproto.TraceRecord) { s.file.line(now, s.name, r) }

func (f *File) line(now microproto.Instant, session string, r microproto.TraceRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		_, f.err = fmt.Fprintf(f.out, "%.9f %s %s\n", float64(now)/1e9, session, r)
	}
}

// Close writes the rest and closes the file. It returns the first error of all writes.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.err, f.out.Flush(), f.file.Close())
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
