// Command conn runs protocols that take a net.Conn over sessions between two nodes: calls of net/rpc, encoded by
// encoding/gob, over one, and HTTP/2 (what gRPC speaks) within TLS over another.
//
//	go run ./examples/conn
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/rpc"
	"os"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conn:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	server, err := newNode("server")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := newNode("client")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Connect(ctx, "server", server.ControlAddr().String()); err != nil {
		return err
	}
	if err := server.Connect(ctx, "client", ""); err != nil {
		return err
	}
	certificate, roots, err := newCertificate("server")
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	failed := make(chan error, 2)
	serving.Go(func() { failed <- serveCalls(ctx, server) })
	serving.Go(func() { failed <- servePages(ctx, server, certificate) })
	err = errors.Join(call(ctx, client, out), fetch(ctx, client, roots, out))
	serving.Wait()
	return errors.Join(err, <-failed, <-failed)
}

// newNode starts a node on the loopback interface. It needs no identity there.
func newNode(name string) (*driver.Node, error) {
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	return driver.New(driver.Config{
		Name: name, Run: "example", Plain: true, Listen: "127.0.0.1:0",
		Rails: []driver.Rail{{Link: link}}, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
	})
}

// Grid has the methods that are called over the network.
type Grid struct{}

// Average sets mean to the average of the values.
func (Grid) Average(values []float64, mean *float64) error {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	*mean = sum / float64(len(values))
	return nil
}

func serveCalls(ctx context.Context, n *driver.Node) error {
	conn, err := n.OpenConn(ctx, "client", "calls")
	if err != nil {
		return err
	}
	s := rpc.NewServer()
	if err := s.Register(Grid{}); err != nil {
		return err
	}
	s.ServeConn(conn) // until the client closes it
	return nil
}

func call(ctx context.Context, n *driver.Node, out io.Writer) error {
	conn, err := n.OpenConn(ctx, "server", "calls")
	if err != nil {
		return err
	}
	c := rpc.NewClient(conn)
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = float64(i)
	}
	mean := 0.0
	if err := c.Call("Grid.Average", values, &mean); err != nil {
		return errors.Join(err, c.Close())
	}
	fmt.Fprintf(out, "net/rpc: the average of %d values is %v\n", len(values), mean)
	return c.Close()
}

func servePages(ctx context.Context, n *driver.Node, certificate tls.Certificate) error {
	conn, err := n.OpenConn(ctx, "client", "pages")
	if err != nil {
		return err
	}
	one := &listener{conns: make(chan net.Conn, 1), addr: conn.LocalAddr()}
	s := http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s for %s", r.Proto, r.URL.Path)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(one.conns)
			}
		},
	}
	one.conns <- conn
	if err := s.ServeTLS(one, "", ""); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func fetch(ctx context.Context, n *driver.Node, roots *x509.CertPool, out io.Writer) error {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "server"}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.OpenConn(ctx, "server", "pages")
		},
	}
	defer transport.CloseIdleConnections()
	for _, page := range []string{"first", "second"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/"+page, nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		fmt.Fprintf(out, "TLS: %s\n", text)
	}
	return nil
}

// listener accepts the connections of a channel.
type listener struct {
	conns chan net.Conn
	addr  net.Addr
}

func (l *listener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *listener) Close() error   { return nil }
func (l *listener) Addr() net.Addr { return l.addr }

// newCertificate returns a self-signed certificate for a name, and a pool that holds it.
func newCertificate(name string) (tls.Certificate, *x509.CertPool, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, roots, nil
}
