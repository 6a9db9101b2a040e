// The residual of all runs against time and sweeps, on a logarithmic axis.
"use strict";

const charts = [
  {id: "chart-time", column: 0, name: "seconds"},
  {id: "chart-sweeps", column: 1, name: "sweeps"},
];

// points returns the samples of a run as columns, the newest observation at the end.
function points(run, column) {
  const x = [], y = [];
  for (const s of run.samples) {
    if (!(s[2] > 0)) continue;
    if (x.length && s[column] <= x[x.length - 1]) { y[y.length - 1] = s[2]; continue; }
    x.push(s[column]); y.push(s[2]);
  }
  const last = column ? run.state.sweep : run.state.elapsed;
  if (x.length && run.state.residual > 0 && last > x[x.length - 1]) { x.push(last); y.push(run.state.residual); }
  return [x, y];
}

function chartOptions(chart, runs, width) {
  const axis = {stroke: theme("dim"), grid: {stroke: theme("line"), width: 1}, ticks: {stroke: theme("line")}};
  return {
    width, height: 260, scales: {x: {time: false}, y: {distr: 3, log: 10}},
    axes: [{...axis, label: chart.name}, {...axis, size: 62, values: (u, all) => all.map(v => v === null ? "" : v.toExponential(0))}],
    cursor: {drag: {x: true, y: false}},
    series: [{label: chart.name, value: (u, v) => number(v)}].concat(runs.map((r, i) => ({
      label: r.info.label, stroke: hue(i), width: 1.5, points: {show: false}, spanGaps: true,
      value: (u, v) => number(v),
    }))).concat([{label: "tolerance", stroke: theme("dim"), dash: [4, 4], points: {show: false}, spanGaps: true, value: (u, v) => number(v)}]),
  };
}

function drawCharts() {
  const runs = model.runs.filter(r => r.info && r.samples.length > 0);
  for (const chart of charts) {
    const at = byId(chart.id), width = Math.max(200, at.clientWidth);
    if (!runs.length) continue;
    const tables = runs.map(r => points(r, chart.column));
    const all = uPlot.join(tables), tolerance = runs[0].info.tolerance;
    all.push(all[0].map((_, i) => i === 0 || i === all[0].length - 1 ? tolerance : null));
    const key = runs.map(r => r.id).join() + theme("dim");
    if (chart.key !== key) {
      if (chart.plot) chart.plot.destroy();
      chart.plot = new uPlot(chartOptions(chart, runs, width), all, at);
      chart.key = key;
    } else {
      if (chart.plot.width !== width) chart.plot.setSize({width, height: 260});
      chart.plot.setData(all);
    }
  }
}
