package cli

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Bounds of the servers of a run.
const (
	serveTime        = 5 * time.Second
	serveHeaderBytes = 4 << 10
	serveConns       = 32 // at a time; more close older ones
)

// serve serves HTTP at the address of a flag until stop is called. guarded states that the handler asks for a token.
// notice returns the message about the address.
func (a *app) serve(flag, address string, guarded bool, h http.Handler, notice func(net.Addr) string) (
	stop func(), err error,
) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenMistake(flag, address, err)
	}
	if !guarded && !onLoopback(l.Addr()) {
		a.log.Warn().Msgf("%s: everyone who can connect to %v can read the state of this run", flag, l.Addr())
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
	a.tell(notice(l.Addr()))
	return func() { _ = server.Close(); done.Wait() }, nil
}

// onLoopback reports whether only processes of this host can reach an address.
func onLoopback(a net.Addr) bool {
	t, is := a.(*net.TCPAddr)
	return is && t.IP.IsLoopback()
}

// localAddress adds the loopback address to a port without host.
func localAddress(flag string) string {
	port, only := strings.CutPrefix(flag, ":")
	if !only && strings.Contains(flag, ":") {
		return flag
	}
	return net.JoinHostPort("127.0.0.1", port)
}
