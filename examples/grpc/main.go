// Command grpc calls a gRPC service over a session between two nodes: the health service of gRPC, and a stream of its
// changes. It is a module of its own, so that P2PDC does not depend on gRPC.
//
//	cd examples/grpc && go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	pb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
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

	state := health.NewServer()
	s := grpc.NewServer()
	pb.RegisterHealthServer(s, state)
	served := make(chan error, 1)
	go func() { served <- s.Serve(server.Listen("rpc")) }() // it accepts from any peer
	err = call(ctx, client, state, out)
	s.Stop()
	return errors.Join(err, <-served)
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

// call asks for the state of a solver, follows its changes, and makes one.
func call(ctx context.Context, n *driver.Node, state *health.Server, out io.Writer) error {
	conn, err := grpc.NewClient("passthrough:server",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, peer string) (net.Conn, error) {
			return n.OpenConn(ctx, peer, "rpc/client")
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	solver := &pb.HealthCheckRequest{Service: "solver"}
	state.SetServingStatus("solver", pb.HealthCheckResponse_NOT_SERVING)
	c := pb.NewHealthClient(conn)
	r, err := c.Check(ctx, solver)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "gRPC: the solver is %v\n", r.Status)
	changes, err := c.Watch(ctx, solver)
	if err != nil {
		return err
	}
	for range 2 {
		if r, err = changes.Recv(); err != nil {
			return err
		}
		fmt.Fprintf(out, "gRPC, a stream: the solver is %v\n", r.Status)
		state.SetServingStatus("solver", pb.HealthCheckResponse_SERVING)
	}
	return nil
}
