// A slice of u with the contact set. The values are asked for only while the slice is shown.
"use strict";

const field = {shown: null, asked: false};

// fieldOf decodes values that the program has sent.
function fieldOf(v) {
  return {...v, u: floatsOf(v.u), gap: floatsOf(v.gap), contact: bytesOf(v.contact)};
}

// axesOf returns the axes that a run's grid has.
const axesOf = run => ["x", "y", "z"].slice(0, run.info.n.length);

function setUpField(run) {
  const axis = byId("axis"), plane = byId("plane"), names = axesOf(run);
  if (axis.dataset.run !== String(run.id)) {
    axis.dataset.run = run.id;
    axis.replaceChildren();
    // In fewer dimensions there is one slice, across the axis that the grid does not have.
    if (names.length < 3) put(axis, "option", "all", {value: 2});
    else names.forEach((n, i) => put(axis, "option", n, {value: i}));
    axis.value = 2;
    plane.dataset.axis = "";
    field.shown = null;
  }
  if (plane.dataset.axis !== axis.value) {
    plane.dataset.axis = axis.value;
    plane.max = (run.info.n[axis.value] || 1) - 1;
    plane.value = Math.floor(plane.max / 2);
    plane.disabled = plane.max < 1;
  }
  setText(byId("plane-at"), plane.disabled ? "" : `${Number(plane.value) + 1} of ${Number(plane.max) + 1}`);
  byId("surface-panel").hidden = names.length < 3;
}

// cut returns the slice of a sample of the whole grid that is nearest to a plane.
function cut(v, axis, plane) {
  const at = Math.max(0, Math.min(v.size[axis] - 1, Math.round((plane - v.first[axis]) / v.stride[axis])));
  const [a, b] = [0, 1, 2].filter(i => i !== axis), size = [...v.size], first = [...v.first];
  size[axis] = 1; first[axis] = v.first[axis] + at * v.stride[axis];
  const n = size[a] * size[b], out = {...v, size, first, u: new Float32Array(n), gap: new Float32Array(n), contact: new Uint8Array(n)};
  const step = [1, v.size[0], v.size[0] * v.size[1]];
  for (let j = 0, k = 0; j < size[b]; j++) for (let i = 0; i < size[a]; i++, k++) {
    const from = at * step[axis] + i * step[a] + j * step[b];
    out.u[k] = v.u[from]; out.gap[k] = v.gap[from]; out.contact[k] = v.contact[from];
  }
  return out;
}

function drawField(v, axis) {
  const canvas = byId("field"), {c, w, h} = open2D(canvas);
  canvas.setAttribute("aria-label", "slice of u");
  field.shown = v;
  if (!v) return;
  const [a, b] = [0, 1, 2].filter(i => i !== axis), nx = v.size[a], ny = v.size[b];
  let lo = Infinity, hi = -Infinity, touching = 0, known = 0;
  for (let i = 0; i < v.u.length; i++) if (isFinite(v.u[i])) { lo = Math.min(lo, v.u[i]); hi = Math.max(hi, v.u[i]); known++; if (v.contact[i]) touching++; }
  const image = new ImageData(nx, ny), red = [[215, 48, 39], [244, 109, 67]];
  for (let j = 0; j < ny; j++) for (let i = 0; i < nx; i++) {
    const k = j * nx + i, to = 4 * ((ny - 1 - j) * nx + i);
    if (!isFinite(v.u[k])) continue;
    let rgb = shade(hi > lo ? (v.u[k] - lo) / (hi - lo) : .5);
    if (v.contact[k]) rgb = rgb.map((x, q) => Math.round(.35 * x + .65 * red[v.contact[k] - 1][q]));
    image.data.set([rgb[0], rgb[1], rgb[2], 255], to);
  }
  const off = document.createElement("canvas");
  off.width = nx; off.height = ny;
  off.getContext("2d").putImageData(image, 0, 0);
  const wide = nx * v.stride[a], high = Math.max(1, ny * v.stride[b]), flat = ny === 1;
  const scale = Math.min((w - 70) / wide, h / high), dw = wide * scale, dh = flat ? 40 : high * scale;
  c.imageSmoothingEnabled = false;
  c.drawImage(off, 0, 0, dw, dh);
  for (let i = 0; i < 100; i++) { c.fillStyle = css(shade(i / 99)); c.fillRect(dw + 10, (h - 20) * (1 - i / 100), 12, (h - 20) / 90 + 1); }
  c.fillStyle = theme("fg");
  c.fillText(number(hi, 3), dw + 26, 12);
  c.fillText(number(lo, 3), dw + 26, h - 8);
  setText(byId("field-at"), `after ${seconds(v.elapsed)}: u from ${number(lo, 3)} to ${number(hi, 3)}, ${known ? (100 * touching / known).toFixed(1) : 0} % in contact (red)` +
    (Math.max(...v.stride) > 1 ? `, every ${Math.max(v.stride[a], v.stride[b])}th point` : ""));
  canvas.dataset.known = known;
  canvas.dataset.contact = touching;
}

// fetchField asks the program for values, null if there are none.
async function fetchField(query) {
  const r = await fetch("field?" + query);
  if (!r.ok) return {error: (await r.text()).trim()};
  return fieldOf(await r.json());
}

async function refreshField(run, saved) {
  if (!byId("field-on").checked || field.asked || document.hidden) return;
  const axis = Number(byId("axis").value), plane = Number(byId("plane").value);
  if (saved) {
    const v = saved[run.id];
    if (v) drawField(cut(v, axis, plane), axis);
    else setText(byId("field-at"), "the report has no values of this run");
    return;
  }
  field.asked = true;
  try {
    const v = await fetchField(`run=${run.id}&axis=${axis}&plane=${plane}`);
    if (v.error) setText(byId("field-at"), v.error);
    else drawField(v.size[axis] > 1 ? cut(v, axis, plane) : v, axis);
  } catch { setText(byId("field-at"), "no connection to the program"); }
  field.asked = false;
}
