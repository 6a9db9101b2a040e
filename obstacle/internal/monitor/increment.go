package monitor

import "slices"

// Increment is what has changed since another one.
type Increment struct {
	Removed []int    `json:"removed,omitempty"` // IDs of forgotten runs
	Runs    []Change `json:"runs,omitempty"`
}

// Empty reports whether nothing has changed.
func (i *Increment) Empty() bool { return len(i.Removed) == 0 && len(i.Runs) == 0 }

// Change is what has changed in a run. Sections that are nil have not.
type Change struct {
	ID       int            `json:"id"`
	Info     *Info          `json:"info,omitzero"`
	State    *State         `json:"state,omitzero"`
	Stride   int            `json:"stride,omitzero"`  // if it has grown: every second sample is left out for each doubling
	Samples  []Sample       `json:"samples,omitzero"` // follow the others
	Places   []Place        `json:"places,omitzero"`
	Peers    []Peer         `json:"peers,omitzero"`
	Reads    []Read         `json:"reads,omitzero"`
	Sessions []Session      `json:"sessions,omitzero"`
	Marks    []NumberedMark `json:"marks,omitzero"`
}

// NumberedMark is a mark with its index; it replaces the one there.
type NumberedMark struct {
	At   int  `json:"at"`
	Mark Mark `json:"mark"`
}

// Cursor is what one reader has; the zero value has nothing.
type Cursor struct {
	version uint64
	runs    map[int]*readRun
}

// readRun is what a reader has of the samples of a run.
type readRun struct{ stride, samples int }

// Next returns the changes since the last call with the same cursor.
func (m *Monitor) Next(c *Cursor) Increment {
	if c.runs == nil {
		c.runs = map[int]*readRun{}
	}
	var out Increment
	for id := range c.runs {
		if m.find(id) == nil {
			out.Removed = append(out.Removed, id)
			delete(c.runs, id)
		}
	}
	slices.Sort(out.Removed)
	for _, e := range m.runs {
		if d, any := e.since(c); any {
			out.Runs = append(out.Runs, d)
		}
	}
	c.version = m.version
	return out
}

// since returns what has changed in a run.
func (e *entry) since(c *Cursor) (d Change, any bool) {
	d.ID = e.ID
	have := c.runs[e.ID]
	if have == nil {
		have = &readRun{stride: 1}
		c.runs[e.ID] = have
		any = true
	}
	if e.state > c.version {
		info, state := e.Info, e.State
		d.Info, d.State, any = &info, &state, true
	}
	if e.Stride > have.stride {
		for ; have.stride < e.Stride; have.stride *= 2 {
			have.samples = (have.samples + 1) / 2
		}
		d.Stride, any = e.Stride, true
	}
	if have.samples < len(e.Samples) {
		d.Samples, any = slices.Clone(e.Samples[have.samples:]), true
		have.samples = len(e.Samples)
	}
	if e.places > c.version {
		d.Places, any = e.Places, true
	}
	if e.peers > c.version {
		d.Peers, any = e.Peers, true
	}
	if e.reads > c.version {
		d.Reads, any = e.Reads, true
	}
	if e.sessions > c.version {
		d.Sessions, any = e.Sessions, true
	}
	for i, v := range e.marks {
		if v > c.version {
			d.Marks, any = append(d.Marks, NumberedMark{i, e.Marks[i]}), true
		}
	}
	return d, any
}

// Apply makes the next snapshot. The page has the same function in JavaScript.
func (s *Snapshot) Apply(i Increment) {
	s.Runs = slices.DeleteFunc(s.Runs, func(r Run) bool { return slices.Contains(i.Removed, r.ID) })
	for _, d := range i.Runs {
		at := slices.IndexFunc(s.Runs, func(r Run) bool { return r.ID == d.ID })
		if at < 0 {
			at = len(s.Runs)
			s.Runs = append(s.Runs, Run{ID: d.ID, Stride: 1})
		}
		s.Runs[at].apply(&d)
	}
}

func (r *Run) apply(d *Change) {
	if d.Info != nil {
		r.Info = *d.Info
	}
	if d.State != nil {
		r.State = *d.State
	}
	for ; r.Stride < d.Stride; r.Stride *= 2 {
		r.Samples = halve(r.Samples)
	}
	r.Samples = append(r.Samples, d.Samples...)
	if d.Places != nil {
		r.Places = d.Places
	}
	if d.Peers != nil {
		r.Peers = d.Peers
	}
	if d.Reads != nil {
		r.Reads = d.Reads
	}
	if d.Sessions != nil {
		r.Sessions = d.Sessions
	}
	for _, k := range d.Marks {
		for len(r.Marks) <= k.At {
			r.Marks = append(r.Marks, Mark{})
		}
		r.Marks[k.At] = k.Mark
	}
}
