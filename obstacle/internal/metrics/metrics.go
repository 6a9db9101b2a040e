// Package metrics serves the state of a run, as the launcher knows it, to Prometheus.
package metrics

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// Run holds the properties of a run that do not change.
type Run struct {
	Problem, Scheme, Method, Version string

	Peers, Points int
	Tolerance     float64
}

// Bounds of a scrape.
const (
	scrapes    = 4 // at the same time
	scrapeTime = 5 * time.Second
)

// Handler answers scrapes with the metrics of a run and those of the launcher's process.
func Handler(r Run, s *launch.Status) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{r, s})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: scrapeTime})
}

// collector reads the status at each scrape.
type collector struct {
	run    Run
	status *launch.Status
}

// metric returns the description of a family of metrics. docs/cli.md has the same table.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("obstacle_"+name, help, labels, nil)
}

var (
	runInfo   = metric("run_info", "The run, in labels; always 1.", "problem", "scheme", "method", "version")
	peers     = metric("peers", "Peers of the run.")
	points    = metric("grid_points", "Interior grid points.")
	tolerance = metric("tolerance_ratio", "Relative residual at which the run stops.")
	phase     = metric("phase", "1 for the phase that the run is in, else 0.", "phase")
	elapsed   = metric("elapsed_seconds", "Time since the first relaxation, at the last report of rank 0.")
	timeStep  = metric("time_step", "Time step in progress; 0 where the problem is stationary.")
	sweeps    = metric("sweeps_total", "Sweeps of a peer in the time step in progress, at its last report.", "rank")
	residual  = metric("relative_residual_ratio", "Relative residual measured last; absent before the first.")
	lostPeers = metric("lost_peers", "Peers whose process or connection ended early, or that were silent.")

	messages      = metric("halo_messages_sent_total", "Messages sent by the halo sessions.")
	bytesSent     = metric("halo_sent_bytes_total", "Payload sent by the halo sessions.")
	lostMessages  = metric("halo_messages_lost", "Halo messages sent and not received: lost, or in transit.")
	segments      = metric("halo_segments_sent_total", "Segments sent by the halo sessions.")
	retransmitted = metric("halo_segments_retransmitted_total", "Segments that the halo sessions retransmitted.")
	replaced      = metric("halo_messages_replaced_total",
		"Asynchronous halo messages replaced by newer ones before they were read.")

	sessionInfo = metric("session_info", "A session as one end sees it, in labels; always 1.",
		"rank", "peer", "session", "mode", "locality", "network", "column")
	sessionEpoch = metric("session_epoch", "Epoch of a session: how often its composition was replaced.", "rank",
		"session")
)

func families() []*prometheus.Desc {
	return []*prometheus.Desc{runInfo, peers, points, tolerance, phase, elapsed, timeStep, sweeps, residual, lostPeers,
		messages, bytesSent, lostMessages, segments, retransmitted, replaced, sessionInfo, sessionEpoch}
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range families() {
		out <- d
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(runInfo, 1, c.run.Problem, c.run.Scheme, c.run.Method, c.run.Version)
	gauge(peers, float64(c.run.Peers))
	gauge(points, float64(c.run.Points))
	gauge(tolerance, c.run.Tolerance)
	now := c.status.State()
	for _, p := range launch.Phases() {
		gauge(phase, map[bool]float64{true: 1}[p == now.Phase], p.String())
	}
	progress := now.Progress
	gauge(elapsed, progress.Elapsed.Seconds())
	gauge(timeStep, float64(progress.Step))
	if progress.Sweep > 0 && !math.IsNaN(progress.Residual) {
		gauge(residual, progress.Residual)
	}
	gauge(lostPeers, float64(len(now.Lost)))
	for rank, n := range now.Sweeps {
		counter(sweeps, n, strconv.Itoa(rank))
	}
	var traffic report.Traffic
	for rank := range c.run.Peers {
		traffic.Add(now.Sessions[rank])
		own := strconv.Itoa(rank)
		for _, s := range now.Sessions[rank] {
			gauge(sessionInfo, 1, own, strconv.Itoa(s.Peer), s.Name, s.Mode, s.Locality, s.Network, s.Column)
			gauge(sessionEpoch, float64(s.Epoch), own, s.Name)
		}
	}
	counter(messages, traffic.Messages)
	counter(bytesSent, traffic.Bytes)
	gauge(lostMessages, float64(traffic.MessagesLost()))
	counter(segments, traffic.Segments)
	counter(retransmitted, traffic.Retransmitted)
	counter(replaced, traffic.Replaced)
}
