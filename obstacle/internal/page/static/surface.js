// The free boundary in three dimensions as a surface that turns: WebGL where there is, canvas where not.
"use strict";

const surface = {turn: [-1.1, 0.5], triangles: null, asked: 0, gl: undefined};

// corners of a cell, and its division into six tetrahedra around the diagonal from 0 to 7.
const corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]];
const tetrahedra = [[0, 1, 3, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 6, 4, 7], [0, 4, 5, 7], [0, 5, 1, 7]];

// boundaryOf returns the triangles of the boundary of the contact set. The distance to the obstacle grows with the square
// of the distance to the free boundary, so its root is interpolated. Each vertex is x, y, z, normal.
function boundaryOf(v) {
  const [nx, ny, nz] = v.size, longest = Math.max(...v.size.map((n, a) => (n - 1) * v.stride[a])) || 1;
  let far = 0;
  for (const g of v.gap) if (isFinite(g)) far = Math.max(far, g);
  const level = 0.04, values = Float32Array.from(v.gap, (g, i) => v.contact[i] ? -level : isFinite(g) ? Math.sqrt(Math.max(g, 0) / (far || 1)) - level : NaN);
  const at = (x, y, z) => (z * ny + y) * nx + x, out = [];
  const place = (x, y, z) => [x, y, z].map((c, a) => (c * v.stride[a] - (v.size[a] - 1) * v.stride[a] / 2) / longest);
  const between = (p, q) => { const t = p.f / (p.f - q.f); return p.p.map((c, a) => c + t * (q.p[a] - c)); };
  const triangle = (a, b, c) => {
    const d = b.map((x, i) => x - a[i]), e = c.map((x, i) => x - a[i]);
    const n = [d[1] * e[2] - d[2] * e[1], d[2] * e[0] - d[0] * e[2], d[0] * e[1] - d[1] * e[0]], l = Math.hypot(...n);
    if (l > 0) for (const p of [a, b, c]) out.push(...p, n[0] / l, n[1] / l, n[2] / l);
  };
  for (let z = 0; z < nz - 1; z++) for (let y = 0; y < ny - 1; y++) for (let x = 0; x < nx - 1; x++) {
    let inside = 0, bad = false;
    const f = corners.map(c => { const w = values[at(x + c[0], y + c[1], z + c[2])]; if (w < 0) inside++; bad = bad || isNaN(w); return w; });
    if (bad || inside === 0 || inside === 8) continue;
    const all = corners.map((c, i) => ({p: place(x + c[0], y + c[1], z + c[2]), f: f[i]}));
    for (const t of tetrahedra) {
      const low = t.filter(i => f[i] < 0).map(i => all[i]), high = t.filter(i => f[i] >= 0).map(i => all[i]);
      if (!low.length || !high.length) continue;
      if (low.length === 1) triangle(...high.map(h => between(low[0], h)));
      else if (high.length === 1) triangle(...low.map(l => between(l, high[0])));
      else {
        const [a, b, c, d] = [between(low[0], high[0]), between(low[0], high[1]), between(low[1], high[1]), between(low[1], high[0])];
        triangle(a, b, c); triangle(a, c, d);
      }
    }
  }
  return new Float32Array(out);
}

const shaders = [`attribute vec3 p; attribute vec3 n; uniform mat3 m; uniform vec2 s; varying float light;
void main() { vec3 q = m * p; vec3 k = m * n; light = .3 + .7 * abs(k.z); gl_Position = vec4(q.xy * s, q.z * .5, 1.); }`,
`precision mediump float; varying float light; uniform vec3 c; void main() { gl_FragColor = vec4(c * light, 1.); }`];

function openGL(canvas) {
  const gl = canvas.getContext("webgl", {antialias: true});
  if (!gl) return null;
  const program = gl.createProgram();
  [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].forEach((kind, i) => {
    const s = gl.createShader(kind);
    gl.shaderSource(s, shaders[i]); gl.compileShader(s); gl.attachShader(program, s);
  });
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  ["p", "n"].forEach((name, i) => {
    const a = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(a);
    gl.vertexAttribPointer(a, 3, gl.FLOAT, false, 24, 12 * i);
  });
  gl.enable(gl.DEPTH_TEST);
  gl.program = program;
  return gl;
}

// rotation returns the rows of the matrix that turns the surface.
function rotation() {
  const [a, b] = surface.turn, [sa, ca, sb, cb] = [Math.sin(a), Math.cos(a), Math.sin(b), Math.cos(b)];
  return [[cb, -sb, 0], [ca * sb, ca * cb, -sa], [sa * sb, sa * cb, ca]];
}

function drawSurface() {
  const canvas = byId("surface"), t = surface.triangles;
  if (!t) return;
  if (surface.gl === undefined) surface.gl = openGL(canvas);
  const m = rotation(), colour = [.85, .28, .2], gl = surface.gl;
  canvas.dataset.triangles = t.length / 18;
  canvas.dataset.by = gl ? "webgl" : "canvas";
  if (gl) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale; canvas.height = canvas.clientHeight * scale;
    const side = Math.min(canvas.width, canvas.height) * .9 / surface.radius;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix3fv(gl.getUniformLocation(gl.program, "m"), false, [0, 1, 2].flatMap(k => m.map(row => row[k])));
    gl.uniform2f(gl.getUniformLocation(gl.program, "s"), side / canvas.width, side / canvas.height);
    gl.uniform3f(gl.getUniformLocation(gl.program, "c"), ...colour);
    gl.bufferData(gl.ARRAY_BUFFER, t, gl.DYNAMIC_DRAW);
    gl.drawArrays(gl.TRIANGLES, 0, t.length / 6);
    return;
  }
  const {c, w, h} = open2D(canvas), side = Math.min(w, h) * .45 / surface.radius, faces = [];
  const turned = (k, n) => m.map(r => r[0] * t[k] + r[1] * t[k + 1] + r[2] * t[k + 2])[n];
  for (let k = 0; k < t.length; k += 18) {
    const p = [0, 6, 12].map(d => [0, 1, 2].map(n => turned(k + d, n)));
    faces.push({p, z: p[0][2] + p[1][2] + p[2][2], light: .3 + .7 * Math.abs(turned(k + 3, 2))});
  }
  for (const f of faces.sort((a, b) => b.z - a.z)) { // the depth of WebGL increases away from the viewer
    c.fillStyle = c.strokeStyle = css(colour.map(x => Math.round(255 * x * f.light)));
    c.beginPath();
    f.p.forEach((q, i) => c[i ? "lineTo" : "moveTo"](w / 2 + q[0] * side, h / 2 - q[1] * side));
    c.fill(); c.stroke();
  }
}

async function refreshSurface(run, saved) {
  if (!byId("surface-on").checked || run.info.n.length < 3 || document.hidden) { return; }
  const now = Date.now();
  if (surface.run === run.id && (saved && surface.asked ? surface.triangles : surface.asked > now - 5000)) return;
  surface.asked = now; surface.run = run.id;
  let v;
  try { v = saved ? saved[run.id] : await fetchField(`run=${run.id}&whole`); } catch { v = {error: "no connection to the program"}; }
  if (!v || v.error) { setText(byId("surface-at"), v ? v.error : "the report has no values of this run"); return; }
  surface.triangles = boundaryOf(v);
  const n = surface.triangles.length / 18;
  const stride = Math.max(...v.stride);
  surface.radius = 0.05;
  for (let i = 0; i < surface.triangles.length; i += 6) surface.radius = Math.max(surface.radius, Math.hypot(...surface.triangles.subarray(i, i + 3)));
  setText(byId("surface-at"), n ? `after ${seconds(v.elapsed)}` + (stride > 1 ? `, from each ${stride}th point along an axis` : "") : "the contact set is empty at these points");
  drawSurface();
}

// turnSurface turns by angles in radians.
function turnSurface(dx, dy) {
  surface.turn = [surface.turn[0] + dy, surface.turn[1] + dx];
  drawSurface();
}

byId("surface").addEventListener("keydown", e => {
  const d = {ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, -.1], ArrowDown: [0, .1]}[e.key];
  if (d) { e.preventDefault(); turnSurface(...d); }
});
byId("surface").addEventListener("pointerdown", e => e.target.setPointerCapture(e.pointerId));
byId("surface").addEventListener("pointermove", e => { if (e.buttons) turnSurface(e.movementX / 100, e.movementY / 100); });
