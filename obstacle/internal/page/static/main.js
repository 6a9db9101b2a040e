// Connects the model to the panels.
"use strict";

let saved = null, due = false, ended = false, lostSince = null;

function selected() {
  const id = Number(byId("run").value);
  return model.runs.find(r => r.id === id && r.info) || model.runs.findLast(r => r.info);
}

// listRuns keeps the newest run selected until the user selects one.
function listRuns() {
  const list = byId("run"), all = model.runs.filter(r => r.info), key = all.map(r => r.id).join();
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    const chosen = list.dataset.chosen && all.some(r => String(r.id) === list.value) ? list.value : String(all[all.length - 1].id);
    list.replaceChildren();
    for (const r of all) put(list, "option", r.info.label, {value: r.id});
    list.value = chosen;
  }
}

function draw() {
  due = false;
  if (!model.runs.some(r => r.info)) return;
  listRuns();
  const run = selected();
  setUpField(run);
  drawNumbers(run); drawCharts(); drawPeers(run); drawReads(run); drawMarks(run); drawMap(run); drawSessions(run);
}

function schedule() {
  if (!due) { due = true; requestAnimationFrame(draw); }
}

function refresh() {
  const run = selected();
  if (!run) return;
  refreshField(run, saved);
  refreshSurface(run, saved);
}

function connect() {
  const source = new EventSource("events");
  source.onopen = () => { model.runs = []; setText(byId("link"), ""); lostSince = null; drawLost(); }; // a new connection begins with everything
  source.onmessage = e => { applyIncrement(model, JSON.parse(e.data)); schedule(); };
  source.addEventListener("end", () => { // the program ends
    ended = true;
    source.close();
    setText(byId("link"), "the program has ended; this is what it showed last");
  });
  source.onerror = () => {
    const over = model.runs.every(r => r.state && r.state.phase === "ended");
    setText(byId("link"), over ? "the program has ended; this is what it showed last" : "no connection to the program");
    if (over && model.runs.length) { ended = true; source.close(); } else lostSince ||= new Date();
    drawLost();
  };
}

// drawLost says since when there is no connection to the program, and what shows the run if it was lost.
function drawLost() {
  const run = model.runs.findLast(r => r.info), e = byId("lost");
  e.hidden = !lostSince || ended;
  if (e.hidden || !run) return;
  const again = attachCommand(run), age = Math.round((Date.now() - lostSince) / 1000);
  setText(e, `The connection to the program was lost at ${lostSince.toLocaleTimeString()}${age >= 60 ? ` (${seconds(60 * Math.floor(age / 60))} ago)` : ""}. ` +
    "The page shows what it knew then. " + (again ? `If the program has ended, the run goes on without it, and this command shows it, also here: ${again}` :
    run.info.simulated || run.info.attached ? "It comes back if the program still runs." : "If the program has ended, its run has ended, too."));
}

byId("run").addEventListener("change", e => { e.target.dataset.chosen = "1"; draw(); refresh(); });
byId("axis").addEventListener("change", () => { draw(); refresh(); });
byId("plane").addEventListener("input", () => { setUpField(selected()); refresh(); });
byId("surface-on").addEventListener("change", () => { surface.asked = 0; });
for (const id of ["field-on", "surface-on"]) byId(id).addEventListener("change", refresh);
describe(byId("peers"), byId("peers-at"), readPeer);
describe(byId("reads"), byId("reads-at"), readAge);
describe(byId("map"), byId("map-at"), readBox);
addEventListener("resize", () => { schedule(); refresh(); drawSurface(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);

if (byId("saved")) {
  const data = JSON.parse(byId("saved").textContent);
  const parts = {samples: [], places: [], peers: [], reads: [], sessions: [], marks: []};
  model.runs = data.snapshot.runs.map(r => Object.fromEntries(Object.entries(r).map(([k, v]) => [k, v ?? parts[k]])));
  saved = {};
  for (const id in data.fields || {}) saved[id] = fieldOf(data.fields[id]);
  setText(byId("link"), "saved report");
  byId("field-on").checked = byId("surface-on").checked = true;
  schedule();
  requestAnimationFrame(refresh);
} else {
  connect();
  setInterval(() => { if (!ended) { refresh(); drawLost(); } }, 1000);
}
