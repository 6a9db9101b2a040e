// The model of package monitor: a snapshot, and increments that make the next one.
"use strict";

const model = {runs: []};

// halve keeps every second sample, the first one included.
function halve(all) { return all.filter((_, i) => i % 2 === 0); }

function applyIncrement(to, inc) {
  if (inc.removed) to.runs = to.runs.filter(r => !inc.removed.includes(r.id));
  for (const d of inc.runs || []) {
    let r = to.runs.find(r => r.id === d.id);
    if (!r) {
      r = {id: d.id, stride: 1, samples: [], places: [], peers: [], reads: [], sessions: [], marks: []};
      to.runs.push(r);
    }
    for (; d.stride && r.stride < d.stride; r.stride *= 2) r.samples = halve(r.samples);
    if (d.samples) r.samples = r.samples.concat(d.samples);
    for (const part of ["info", "state", "places", "peers", "reads", "sessions"]) if (d[part]) r[part] = d[part];
    for (const m of d.marks || []) r.marks[m.at] = m.mark;
  }
}
