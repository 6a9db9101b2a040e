package cli

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/metrics"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Bounds of the servers of a run.
const (
	serveTime        = 5 * time.Second
	serveHeaderBytes = 4 << 10
	serveConns       = 32 // at a time; more close older ones
)

// serve serves HTTP at the address of a flag until stop is called. notice formats the message about the address.
func (a *app) serve(flag, address, notice string, h http.Handler) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenMistake(flag, address, err)
	}
	if at, is := l.Addr().(*net.TCPAddr); is && !at.IP.IsLoopback() {
		a.log.Warn().Msgf("%s: everyone who can connect to %v can read the state of this run", flag, at)
	}
	pending := driver.NewPending(serveConns)
	server := &http.Server{
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				pending.Add(c)
			case http.StateClosed, http.StateHijacked:
				pending.Remove(c)
			}
		},
		ReadHeaderTimeout: serveTime, ReadTimeout: serveTime, WriteTimeout: 2 * serveTime, IdleTimeout: serveTime,
		MaxHeaderBytes: serveHeaderBytes, Handler: h,
	}
	server.SetKeepAlivesEnabled(false)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	fmt.Fprintf(a.err, notice, l.Addr())
	return func() { _ = server.Close(); done.Wait() }, nil
}

// serveMetrics serves metrics for Prometheus at --metrics until stop is called.
func (a *app) serveMetrics(q *request, w *work, s *launch.Status) (stop func(), err error) {
	handler := metrics.Handler(metrics.Run{
		Problem: w.spec.Name(), Scheme: w.scheme.Name(), Method: w.method.Name, Version: build.Version(),
		Peers: w.partition.Peers(), Points: w.problem.Points(), Tolerance: q.tol,
	}, s)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	return a.serve("--metrics", metricsAddress(q.metrics), "metrics at http://%s/metrics\n", mux)
}

// metricsAddress adds the loopback address to a port without host.
func metricsAddress(flag string) string {
	port, only := strings.CutPrefix(flag, ":")
	if !only && strings.Contains(flag, ":") {
		return flag
	}
	return net.JoinHostPort("127.0.0.1", port)
}
