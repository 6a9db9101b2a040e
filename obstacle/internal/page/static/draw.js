// Helpers: elements, canvases, numbers, colours.
"use strict";

const byId = id => document.getElementById(id);

// put creates an element. Texts are never markup.
function put(parent, tag, text, attributes) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
  parent.appendChild(e);
  return e;
}

// setText changes a text only if it differs, so that selections and screen readers are not disturbed.
function setText(e, text) { if (e.textContent !== text) e.textContent = text; }

const theme = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// open2D returns the context of a canvas in CSS pixels, cleared.
function open2D(canvas) {
  const scale = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * scale)) canvas.width = Math.round(w * scale);
  if (canvas.height !== Math.round(h * scale)) canvas.height = Math.round(h * scale);
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, w, h);
  c.font = "12px system-ui, sans-serif";
  c.fillStyle = theme("fg");
  return {c, w, h};
}

// words writes a text in place of a drawing that has no data yet.
function words(canvas, text) {
  const {c, w} = open2D(canvas);
  c.fillStyle = theme("dim");
  canvas.setAttribute("aria-label", text);
  let line = "", y = 20;
  for (const word of text.split(" ")) {
    if (line && c.measureText(line + " " + word).width > w - 16) { c.fillText(line, 8, y); line = ""; y += 18; }
    line += (line && " ") + word;
  }
  c.fillText(line, 8, y);
}

function number(v, digits) {
  if (v === null || v === undefined || !isFinite(v)) return "–";
  if (v === 0) return "0";
  const a = Math.abs(v);
  if (a >= 1e6 || a < 1e-3) return v.toExponential(2);
  return Number.isInteger(v) ? String(v) : v.toPrecision(digits || 4);
}

function seconds(v) {
  if (v === null || v === undefined) return "–";
  if (v < 1e-3 && v > 0) return number(v * 1e6, 3) + " µs";
  if (v < 1 && v > 0) return number(v * 1e3, 3) + " ms";
  if (v < 120) return number(v, 3) + " s";
  return v < 7200 ? Math.round(v / 60) + " min" : (v / 3600).toFixed(1) + " h";
}

// shade maps 0…1 to a colour whose lightness increases evenly.
const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function shade(t) {
  t = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(t), stops.length - 2), f = t - i;
  return stops[i].map((v, k) => Math.round(v + f * (stops[i + 1][k] - v)));
}
const css = c => `rgb(${c[0]},${c[1]},${c[2]})`;

// hue returns one of many distinct colours.
const hue = (i, light) => `hsl(${(i * 137.5 + 210) % 360} 65% ${light || 50}%)`;

function bytesOf(base64) {
  const s = atob(base64), out = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
  return out;
}
const floatsOf = base64 => new Float32Array(bytesOf(base64).buffer);

// describe calls f with the position of the pointer in a canvas, and on arrow keys with steps; f returns a text.
function describe(canvas, out, f) {
  let cell = [0, 0];
  const show = text => { if (text !== undefined) setText(out, text); };
  canvas.addEventListener("pointermove", e => {
    const b = canvas.getBoundingClientRect();
    show(f({x: e.clientX - b.left, y: e.clientY - b.top}));
  });
  canvas.addEventListener("keydown", e => {
    const d = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[e.key];
    if (!d) return;
    e.preventDefault();
    cell = [Math.max(0, cell[0] + d[0]), Math.max(0, cell[1] + d[1])];
    show(f({cell}));
  });
}
