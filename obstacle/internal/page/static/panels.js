// Numbers, peers, ages of values, time line, map and sessions of one run.
"use strict";

function drawNumbers(run) {
  const s = run.state, i = run.info, t = s.traffic;
  const sum = run.peers.reduce((a, p) => [a[0] + p[1], a[1] + p[2], a[2] + p[3]], [0, 0, 0]);
  const all = sum[0] + sum[1] + sum[2];
  const rows = [
    ["residual", "relative residual", s.residual, number(s.residual)],
    ["tolerance", "tolerance", i.tolerance, number(i.tolerance)],
    ["elapsed", i.simulated ? "virtual time" : "time", s.elapsed, seconds(s.elapsed)],
    ["left", "time left", s.left_most, s.phase === "ended" ? "none" : s.left_most === null ? "not known yet"
      : `${seconds(s.left_least)} to ${seconds(s.left_most)}`],
    ["sweep", i.simulated ? "sweeps" : "sweeps of peer 0", s.sweep, number(s.sweep)],
    ["peers", "peers", i.peers, number(i.peers)],
    ["points", "grid points", i.points, `${number(i.points)} (${i.n.join(" × ")})`],
    ["waiting", "waiting, of all time", all > 0 ? sum[1] / all : null, all > 0 ? (100 * sum[1] / all).toFixed(1) + " %" : "–"],
    ["messages", "halo messages", t.messages, number(t.messages)],
    ["bytes", "halo payload", t.bytes, (t.bytes / 1e6).toFixed(1) + " MB"],
    ["contact", "contact points", s.contact, number(s.contact)],
    ["epoch", "epoch", s.epoch, number(s.epoch)],
  ];
  if (i.steps) rows.splice(4, 0, ["step", "time step", s.step, `${s.step} of ${i.steps}`]);
  const list = byId("numbers");
  const key = rows.map(r => r[0]).join();
  if (list.dataset.key !== key) {
    list.replaceChildren();
    list.dataset.key = key;
    for (const [id, name] of rows) { const d = put(list, "div"); put(d, "dt", name); put(d, "dd", "", {id: "n-" + id}); }
  }
  for (const [id, , value, text] of rows) {
    const e = byId("n-" + id);
    setText(e, text);
    e.dataset.value = value === null || value === undefined ? "" : String(value);
  }
  drawLeader(run);
  setText(byId("title"), `${i.problem}: ${i.scheme}, ${i.method}`);
  document.title = `${i.problem} – obstacle`;
  setText(byId("phase"), s.phase === "ended" ? "ended: " + (s.failure || s.reason) : s.phase);
}

// attachCommand returns the command that shows a run whose program is lost, "" if there is none.
function attachCommand(run) {
  const keepers = (run.state.keepers || []).filter(k => k !== run.state.leader);
  const shown = keepers.map(k => k.startsWith("[") ? `'${k}'` : k).join(" ");
  return run.info.attach && keepers.length ? `obstacle attach ${shown} ${run.info.attach}` : "";
}

// drawLeader says which process leads the run, and how it is shown if that is lost.
function drawLeader(run) {
  const s = run.state, again = attachCommand(run);
  let text = run.info.attached ? "This page belongs to obstacle attach. " : "";
  if (s.leader) text += `${s.leader} leads the run` + (s.term > 1 ? ` (term ${s.term})` : "") + ". ";
  if (again && s.phase !== "ended") text += `If ${run.info.attached ? "it" : "this program"} is lost, the run goes on: ${again}`;
  setText(byId("leader"), text);
}

// bars groups ranks so that each bar has at least three pixels.
function bars(run, width) {
  const each = Math.max(1, Math.ceil(run.peers.length * 3 / Math.max(1, width))), out = [];
  for (let at = 0; at < run.peers.length; at += each) {
    const b = {first: at, last: Math.min(at + each, run.peers.length) - 1, time: [0, 0, 0], lost: false};
    for (let r = at; r <= b.last; r++) {
      const p = run.peers[r];
      for (let k = 0; k < 3; k++) b.time[k] += p[k + 1];
      b.lost = b.lost || p[4];
    }
    out.push(b);
  }
  return out;
}

function drawPeers(run) {
  const canvas = byId("peers"), {c, w, h} = open2D(canvas), all = bars(run, w - 40);
  canvas.all = all;
  canvas.setAttribute("aria-label", `times of ${run.peers.length} peers; arrow keys read them`);
  if (!all.some(b => b.time[0] + b.time[1] + b.time[2] > 0)) {
    words(canvas, run.info.silent || "The peers have not reported their times yet.");
    return;
  }
  const most = Math.max(1e-9, ...all.map(b => (b.time[0] + b.time[1] + b.time[2]) / (b.last - b.first + 1)));
  const step = (w - 40) / all.length, width = step > 6 ? Math.min(step - 3, 60) : step, colours = ["relaxing", "waiting", "protocol"].map(theme);
  canvas.step = step;
  all.forEach((b, i) => {
    let y = h - 18;
    b.time.forEach((t, k) => {
      const d = t / (b.last - b.first + 1) / most * (h - 34);
      c.fillStyle = colours[k];
      c.fillRect(40 + i * step, y -= d, Math.max(1, width), d);
    });
    if (b.lost) { c.fillStyle = theme("loss"); c.fillRect(40 + i * step, h - 17, Math.max(2, width), 3); }
  });
  c.fillStyle = theme("dim");
  c.fillText(seconds(most), 0, 14);
  c.fillText("0", 28, h - 18);
  c.fillText("rank 0", 40, h - 2);
  const last = "rank " + (run.peers.length - 1);
  if (all.length > 1) c.fillText(last, w - c.measureText(last).width, h - 2);
}

function readPeer(at) {
  const canvas = byId("peers"), all = canvas.all || [];
  const i = at.cell ? at.cell[0] % Math.max(1, all.length) : Math.floor((at.x - 40) / (canvas.step || 1)), b = all[i];
  if (!b) return;
  const n = b.last - b.first + 1;
  return (n > 1 ? `ranks ${b.first} to ${b.last}, mean: ` : `rank ${b.first}: `) +
    ["relaxing", "waiting", "protocol"].map((name, k) => `${name} ${seconds(b.time[k] / n)}`).join(", ") + (b.lost ? ", lost" : "");
}

function drawReads(run) {
  const canvas = byId("reads"), {c, w, h} = open2D(canvas);
  canvas.grid = undefined;
  canvas.setAttribute("aria-label", `ages of the values that ${run.info.peers} peers read; arrow keys read them`);
  const bin = run.info.bin || 1, n = Math.ceil(run.info.peers / bin);
  if (!run.reads.length) { words(canvas, run.info.silent || "No values have been read from other peers yet."); return; }
  const size = Math.min(w - 60, h - 20), cell = size / n, most = Math.max(1, ...run.reads.map(r => r[3]));
  canvas.grid = {cell, n, bin, run};
  c.strokeStyle = theme("line");
  c.strokeRect(40.5, .5, size, size);
  for (const [by, of, , mean] of run.reads) {
    c.fillStyle = css(shade(mean / most));
    c.fillRect(40 + of * cell, by * cell, Math.max(1, cell - (cell > 8 ? 1 : 0)), Math.max(1, cell - (cell > 8 ? 1 : 0)));
  }
  c.fillStyle = theme("dim");
  c.fillText("reader", 0, 14);
  c.fillText("read from →", 40, h - 4);
  for (let i = 0; i < 100; i++) { c.fillStyle = css(shade(i / 99)); c.fillRect(size + 54, size - 14 - (size - 28) * i / 100, 12, size / 90 + 1); }
  c.fillStyle = theme("fg");
  c.fillText(number(most, 3), size + 70, 22);
  c.fillText("0", size + 70, size - 12);
}

function readAge(at) {
  const g = byId("reads").grid;
  if (!g) return;
  const of = at.cell ? at.cell[0] % g.n : Math.floor((at.x - 40) / g.cell), by = at.cell ? at.cell[1] % g.n : Math.floor(at.y / g.cell);
  const r = g.run.reads.find(r => r[0] === by && r[1] === of);
  const name = i => g.bin > 1 ? `ranks ${i * g.bin}–${(i + 1) * g.bin - 1}` : `rank ${i}`;
  if (of < 0 || by < 0 || of >= g.n || by >= g.n) return;
  if (!r) return `${name(by)} reads nothing from ${name(of)}`;
  return `${name(by)} read ${number(r[2])} faces of ${name(of)}: mean age ${number(r[3], 3)}, last ${number(r[4])} sweeps`;
}

function drawMarks(run) {
  const canvas = byId("timeline"), {c, w, h} = open2D(canvas), end = Math.max(run.state.elapsed, 1e-9);
  const x = t => 8 + (w - 16) * Math.min(1, t / end);
  canvas.setAttribute("aria-label", `time line with ${run.marks.length} marks`);
  c.strokeStyle = theme("line");
  c.beginPath(); c.moveTo(8, h - 22.5); c.lineTo(w - 8, h - 22.5); c.stroke();
  c.fillStyle = theme("dim"); c.fillText("0", 4, h - 6);
  const last = seconds(run.state.elapsed);
  c.fillText(last, w - 8 - c.measureText(last).width, h - 6);
  for (const m of run.marks) {
    c.fillStyle = theme(m.kind);
    if (m.took > 0) { c.globalAlpha = .35; c.fillRect(x(m.at), 6, Math.max(1, x(m.at + m.took) - x(m.at)), h - 30); c.globalAlpha = 1; }
    c.fillRect(x(m.at) - 1, 6, 3, h - 28);
  }
  const list = byId("marks");
  if (list.run !== run.id || list.count > run.marks.length) { list.replaceChildren(); list.run = run.id; }
  const shown = run.marks.slice(-200), drop = run.marks.length - shown.length;
  while (list.children.length > shown.length) list.firstChild.remove();
  shown.forEach((m, i) => {
    const took = m.took !== null && m.took !== undefined ? `, took ${seconds(m.took)}` : "";
    setText(list.children[i] || put(list, "li"), `${seconds(m.at)}: ${m.kind}${m.rank >= 0 ? " of rank " + m.rank : ""}${took}: ${m.text}`);
  });
  list.count = run.marks.length;
  list.start = drop + 1;
}

// The map shows the boxes as a plane in the middle of the longest axis that is not divided would cut them: each box is
// projected along z.
function drawMap(run) {
  const canvas = byId("map"), {c, w, h} = open2D(canvas);
  canvas.boxes = [];
  if (!run.places.length) {
    words(canvas, run.state.leader && run.state.phase !== "joining" ? "The peers have not found the process that leads the run yet." : "The peers have not joined yet.");
    return;
  }
  const hosts = [...new Set(run.places.map(p => p.host))], processes = [...new Set(run.places.map(p => p.host + p.process))];
  const n = [0, 1, 2].map(a => Math.max(...run.places.map(p => p.hi[a])));
  const cuts = [0, 1, 2].map(a => new Set(run.places.map(p => p.lo[a])).size);
  const out = cuts[2] <= cuts[1] ? cuts[2] <= cuts[0] ? 2 : 0 : cuts[1] <= cuts[0] ? 1 : 0;
  const [ax, ay] = [0, 1, 2].filter(a => a !== out);
  const layers = [...new Set(run.places.map(p => p.lo[out]))].sort((a, b) => a - b);
  const columns = Math.ceil(Math.sqrt(layers.length * w / h)) || 1, rows = Math.ceil(layers.length / columns);
  const tw = w / columns, th = h / rows, ratio = Math.max(n[ax], 1) / Math.max(n[ay], 1);
  const sw = Math.min(tw - 6, (th - 6) * Math.max(ratio, .25)), sh = Math.min(th - 6, sw / Math.max(Math.min(ratio, 8), .25));
  run.places.forEach((p, rank) => {
    const k = layers.indexOf(p.lo[out]), x0 = (k % columns) * tw + 3, y0 = Math.floor(k / columns) * th + 3;
    const x = x0 + sw * p.lo[ax] / n[ax], y = y0 + sh * (1 - p.hi[ay] / n[ay]);
    const bw = sw * (p.hi[ax] - p.lo[ax]) / n[ax], bh = sh * (p.hi[ay] - p.lo[ay]) / n[ay];
    c.fillStyle = hue(processes.indexOf(p.host + p.process), 45);
    c.fillRect(x, y, Math.max(1, bw - 1), Math.max(1, bh - 1));
    if (run.peers[rank] && run.peers[rank][4]) { c.strokeStyle = theme("loss"); c.lineWidth = 3; c.strokeRect(x + 1, y + 1, bw - 3, bh - 3); }
    if (bw > 24 && bh > 14) { c.fillStyle = "#fff"; c.fillText(String(rank), x + 4, y + 13); }
    canvas.boxes.push({x, y, w: bw, h: bh, rank});
  });
  canvas.run = run;
  canvas.setAttribute("aria-label", `boxes of ${run.places.length} peers; arrow keys read them`);
  const clusters = [...new Set(run.places.map(p => p.cluster).filter(x => x))];
  setText(byId("hosts"), `${processes.length} processes on ${hosts.length} hosts${hosts.length <= 8 ? ": " + hosts.join(", ") : ""}` +
    (clusters.length ? `; clusters: ${clusters.slice(0, 8).join(", ")}` : "") +
    (layers.length > 1 ? `; ${layers.length} layers of boxes side by side` : ""));
}

function readBox(at) {
  const canvas = byId("map"), run = canvas.run, all = canvas.boxes || [];
  const b = at.cell ? all[(at.cell[0] + at.cell[1]) % Math.max(1, all.length)] : all.find(b => at.x >= b.x && at.x < b.x + b.w && at.y >= b.y && at.y < b.y + b.h);
  if (!b) return;
  const p = run.places[b.rank];
  return `rank ${b.rank}: ${p.process} on ${p.host}${p.cluster ? ", cluster " + p.cluster : ""}; points ` +
    [0, 1, 2].map(a => `${p.lo[a]}–${p.hi[a] - 1}`).join(" × ");
}

const shownSessions = 200;

function drawSessions(run) {
  const body = byId("sessions").tBodies[0], all = run.sessions.slice(0, shownSessions);
  while (body.rows.length > all.length) body.deleteRow(-1);
  all.forEach((s, i) => {
    const row = body.rows[i] || body.insertRow();
    const cells = [s.name, s.from, s.to, s.column, s.network + (s.protected ? ", protected" : "") + (s.frame_bytes ? `, frames of up to ${s.frame_bytes} bytes` : "") + (s.path_down ? `, path down: ${s.path_down}` : ""), (s.composition || []).join(" "),
      s.changes + (s.moves ? `, ${s.moves} of the network` : ""), seconds(s.rtt), (100 * s.loss).toFixed(2) + " %", s.messages];
    cells.forEach((text, k) => setText(row.cells[k] || row.insertCell(), String(text)));
  });
  setText(byId("sessions-of"), run.state.sessions > all.length ? `${all.length} of ${run.state.sessions}` + (run.state.sessions > 1024 ? ", those that retransmit most" : "") :
    all.length ? "" : run.info.silent || "No sessions have been reported yet.");
}
