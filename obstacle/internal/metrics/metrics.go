// Package metrics serves the newest run of a program, as its monitor knows it, to Prometheus.
package metrics

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Source calls f with the newest run, if there is one.
type Source interface{ Newest(f func(*monitor.Run)) }

// Bounds of a scrape.
const (
	scrapes    = 4 // at the same time
	scrapeTime = 5 * time.Second
)

// MaxRanks is the number of peers up to which ranks are labels. In larger runs there are quantiles and sums only.
const MaxRanks = 256

// Handler answers scrapes with the metrics of a run and those of this process.
func Handler(s Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{s})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: scrapeTime})
}

// collector reads the monitor at each scrape.
type collector struct{ source Source }

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
	leftLeast = metric("left_least_seconds", "Estimated time to the tolerance at least; absent while it is unknown.")
	left      = metric("left_seconds", "Estimated time to the tolerance at most; absent while it is unknown.")
	timeStep  = metric("time_step", "Time step in progress; 0 where the problem is stationary.")
	sweeps    = metric("sweeps_total", "Sweeps of a peer, at its last report; absent with more than 256 peers.", "rank")
	residual  = metric("relative_residual_ratio", "Relative residual measured last; absent before the first.")
	spent     = metric("time_seconds_total",
		"Time that a peer spent relaxing, waiting or on protocol; absent with more than 256 peers.", "rank", "what")
	peerSweeps = metric("peer_sweeps", "Quantiles of the sweeps of the peers.")
	peerTime   = metric("peer_time_seconds", "Quantiles of the time that peers spent, and its sum.", "what")
	staleness  = metric("staleness_sweeps", "Age of the halos that sweeps have read, in sweeps of the reader.")

	epoch     = metric("epoch", "How often the run went on after losses and moves.")
	lostPeers = metric("lost_peers", "Peers whose process or connection ended early, or that were silent.")
	lostParts = metric("lost_parts_total", "Parts of the grid that were lost with their peers.")
	moves     = metric("moved_parts_total", "Parts of the grid that went to other processes.")
	recovery  = metric("recovery_seconds", "Time from the loss of a part until all peers relaxed again: count and sum.")

	messages      = metric("halo_messages_sent_total", "Messages sent by the halo sessions.")
	bytesSent     = metric("halo_sent_bytes_total", "Payload sent by the halo sessions.")
	lostMessages  = metric("halo_messages_lost", "Halo messages sent and not received: lost, or in transit.")
	segments      = metric("halo_segments_sent_total", "Segments sent by the halo sessions.")
	retransmitted = metric("halo_segments_retransmitted_total", "Segments that the halo sessions retransmitted.")
	replaced      = metric("halo_messages_replaced_total",
		"Asynchronous halo messages replaced by newer ones before they were read.")

	sessionInfo = metric("session_info",
		"A session as one end sees it, in labels; always 1. Sessions are absent with more than 256 peers.",
		"rank", "peer", "session", "mode", "locality", "network", "column")
	sessionEpoch = metric("session_epoch", "Epoch of a session: how often its composition was replaced.", "rank",
		"session")
	sessionRTT = metric("session_rtt_seconds", "Round-trip time of a session; absent before it is measured.", "rank",
		"session")
	sessionLoss = metric("session_loss_ratio", "Share of the segments of a session that were retransmitted.", "rank",
		"session")
)

func families() []*prometheus.Desc {
	return []*prometheus.Desc{runInfo, peers, points, tolerance, phase, elapsed, leftLeast, left, timeStep, sweeps, residual, spent,
		peerSweeps, peerTime, staleness, epoch, lostPeers, lostParts, moves, recovery, messages, bytesSent, lostMessages,
		segments, retransmitted, replaced, sessionInfo, sessionEpoch, sessionRTT, sessionLoss}
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range families() {
		out <- d
	}
}

// Collect gathers before it sends, since the monitor is locked meanwhile.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	var all []prometheus.Metric
	c.source.Newest(func(r *monitor.Run) { all = gather(r) })
	for _, m := range all {
		out <- m
	}
}

func gather(r *monitor.Run) (all []prometheus.Metric) {
	value := func(t prometheus.ValueType, d *prometheus.Desc, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, t, v, labels...))
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { value(prometheus.GaugeValue, d, v, labels...) }
	counter := func(d *prometheus.Desc, v float64, labels ...string) { value(prometheus.CounterValue, d, v, labels...) }
	i, s := &r.Info, &r.State
	gauge(runInfo, 1, i.Problem, i.Scheme, i.Method, i.Version)
	gauge(peers, float64(i.Peers))
	gauge(points, float64(i.Points))
	gauge(tolerance, i.Tolerance)
	for _, p := range []string{monitor.Joining, monitor.Solving, monitor.Recovering, monitor.Judging, monitor.Ended} {
		gauge(phase, map[bool]float64{true: 1}[p == s.Phase], p)
	}
	gauge(elapsed, s.Elapsed)
	gauge(timeStep, float64(s.Step))
	if s.Residual.Known() && s.Sweep > 0 {
		gauge(residual, float64(s.Residual))
	}
	if s.LeftMost.Known() {
		gauge(leftLeast, float64(s.LeftLeast))
		gauge(left, float64(s.LeftMost))
	}
	lost := 0
	counted, times := []float64{}, map[string][]float64{}
	for rank, p := range r.Peers {
		if p.Lost {
			lost++
		}
		counted = append(counted, p.Sweep)
		if len(r.Peers) <= MaxRanks {
			counter(sweeps, p.Sweep, strconv.Itoa(rank))
		}
		for what, t := range map[string]float64{"relaxing": p.Relaxing, "waiting": p.Waiting, "protocol": p.Protocol} {
			times[what] = append(times[what], t)
			if len(r.Peers) <= MaxRanks {
				counter(spent, t, strconv.Itoa(rank), what)
			}
		}
	}
	all = append(all, summary(peerSweeps, counted))
	for what, t := range times {
		all = append(all, summary(peerTime, t, what))
	}
	gauge(lostPeers, float64(lost))
	gauge(epoch, float64(s.Epoch))
	all = append(all, ages(&s.Ages))
	all = append(all, marks(r)...)
	counter(messages, float64(s.Traffic.Messages))
	counter(bytesSent, float64(s.Traffic.Bytes))
	gauge(lostMessages, float64(s.Traffic.Lost))
	counter(segments, float64(s.Traffic.Segments))
	counter(retransmitted, float64(s.Traffic.Retransmitted))
	counter(replaced, float64(s.Traffic.Replaced))
	if i.Peers > MaxRanks {
		return all
	}
	for k := range r.Sessions {
		s := &r.Sessions[k]
		own := strconv.Itoa(s.From)
		gauge(sessionInfo, 1, own, strconv.Itoa(s.To), s.Name, s.Mode, s.Locality, s.Network, s.Column)
		gauge(sessionEpoch, float64(s.Epoch), own, s.Name)
		gauge(sessionLoss, s.Loss, own, s.Name)
		if s.RTT.Known() {
			gauge(sessionRTT, float64(s.RTT), own, s.Name)
		}
	}
	return all
}

// summary returns the extremes, the quartiles and the sum of values.
func summary(d *prometheus.Desc, values []float64, labels ...string) prometheus.Metric {
	slices.Sort(values)
	sum, at := 0.0, map[float64]float64{}
	for _, v := range values {
		sum += v
	}
	for _, q := range []float64{0, 0.25, 0.5, 0.75, 1} {
		at[q] = math.NaN()
		if n := len(values); n > 0 {
			at[q] = values[int(math.Round(q*float64(n-1)))]
		}
	}
	return prometheus.MustNewConstSummary(d, uint64(len(values)), sum, at, labels...)
}

func ages(a *monitor.Ages) prometheus.Metric {
	all, below := uint64(0), map[float64]uint64{}
	for i, n := range a.Counts {
		if all += n; i < iterate.AgeBounds {
			below[float64(iterate.AgeBound(i))] = all
		}
	}
	return prometheus.MustNewConstHistogram(staleness, all, a.Sum, below)
}

// marks returns what the time line counts.
func marks(r *monitor.Run) []prometheus.Metric {
	lost, moved, took, recovered := 0, 0, 0.0, uint64(0)
	for _, m := range r.Marks {
		switch m.Kind {
		case monitor.MarkMove:
			moved++
		case monitor.MarkLoss:
			if lost++; m.Took.Known() {
				took, recovered = took+float64(m.Took), recovered+1
			}
		}
	}
	return []prometheus.Metric{
		prometheus.MustNewConstMetric(lostParts, prometheus.CounterValue, float64(lost)),
		prometheus.MustNewConstMetric(moves, prometheus.CounterValue, float64(moved)),
		prometheus.MustNewConstSummary(recovery, recovered, took, nil),
	}
}
