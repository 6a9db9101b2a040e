// Package tracefile keeps the rings of a process's nodes and writes them to a trace file.
package tracefile

import (
	"fmt"
	"io"
	"sync"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/trace"
)

// File is a trace file. Its methods may be called from any goroutine.
type File struct {
	name    string
	options trace.Options
	writing sync.Mutex

	mu    sync.Mutex
	nodes []Source // oldest first
}

// Source is a node with a ring. driver.Node implements it.
type Source interface{ Snapshot() *trace.Node }

// maxNodes bounds the nodes of a file. A process has one for each of its parts, and others after every loss of a peer.
const maxNodes = 32

// Create returns a file with that name, which it creates or truncates. Into a pipe or device only Write writes.
func Create(name string, o trace.Options) (*File, error) {
	f := &File{name: name, options: o}
	if output.IsDevice(name) {
		return f, nil
	}
	return f, f.Write()
}

// Ring returns a ring for another node; nil if f is nil.
func (f *File) Ring() *trace.Ring {
	if f == nil {
		return nil
	}
	r := trace.NewRing(f.options)
	r.Touch()
	return r
}

// Add adds a node that has a ring of the file. Beyond maxNodes it forgets the oldest node.
func (f *File) Add(s Source) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes = append(f.nodes, s); len(f.nodes) > maxNodes {
		f.nodes = append(f.nodes[:0], f.nodes[1:]...)
	}
}

// Write writes what the rings hold now in place of what the file holds, or into a pipe or device.
func (f *File) Write() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	nodes := append([]Source(nil), f.nodes...)
	f.mu.Unlock()
	var all []*trace.Node
	for _, n := range nodes {
		if s := n.Snapshot(); s != nil {
			all = append(all, s)
		}
	}
	err := output.Save(f.name, func(w io.Writer) error {
		_, err := w.Write(trace.Append(nil, all...))
		return err
	})
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
