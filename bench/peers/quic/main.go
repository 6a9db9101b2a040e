// Command quic is one end of a comparison of transports: a stream of QUIC. It is in a module of its
// own, so that the main module does not depend on QUIC.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
)

const protocol = "twonode"

func main() {
	host := flag.String("host", "127.0.0.1", "address of this end")
	call := flag.String("call", "", "address of the other end; without it this end waits to be called")
	flag.Parse()
	c, err := channel(context.Background(), *host, *call)
	if err == nil {
		err = twonode.Serve(c, *call != "", os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quic:", err)
		os.Exit(1)
	}
}

// channel opens this end.
func channel(ctx context.Context, host, call string) (twonode.Channel, error) {
	conf := &quic.Config{
		MaxIdleTimeout: time.Hour, InitialStreamReceiveWindow: 4 << 20, InitialConnectionReceiveWindow: 8 << 20,
	}
	if call != "" {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
		conn, err := quic.DialAddr(ctx, call, config, conf)
		if err != nil {
			return nil, err
		}
		s, err := conn.OpenStreamSync(ctx)
		if err != nil {
			return nil, err
		}
		// The first byte makes the stream known at the other end.
		_, err = s.Write([]byte{1})
		return twonode.ByteStream{ReadWriter: s}, err
	}
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}}
	l, err := quic.ListenAddr(net.JoinHostPort(host, "0"), config, conf)
	if err != nil {
		return nil, err
	}
	fmt.Println(l.Addr())
	conn, err := l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(s, make([]byte, 1))
	return twonode.ByteStream{ReadWriter: s}, err
}

// certificate returns a certificate for this run, which QUIC requires.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
