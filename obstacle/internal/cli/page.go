package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/metrics"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/page"
)

// pageFlags are the flags of the live page, the metrics and the report.
type pageFlags struct {
	http, metrics, token, tokenFile, report string

	status bool   // --status is given, which takes the token, too
	random string // the token of all servers of the program; empty: none was made yet
}

// The values of --http-token.
const (
	tokenRandom = "random"
	tokenNone   = "none"
)

func (p *pageFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.http, "http", "",
		"HOST:PORT, or PORT on loopback: serve a live page of the run at /, and metrics for Prometheus at /metrics")
	f.StringVar(&p.metrics, "metrics", "", "HOST:PORT, or PORT on loopback: the server of --http without the page")
	f.StringVar(&p.token, "http-token", tokenRandom,
		"token that --http, --metrics and --status ask for: random, printed with the address, or none")
	f.StringVar(&p.tokenFile, "http-token-file", "",
		"file, readable by its owner only, with the token for --http, --metrics and --status")
	f.StringVar(&p.report, "report", "", "write the page as one HTML file at the end of the run")
}

// minToken is the least length of a token.
const minToken = 16

// pages are the monitor of a program's runs and what shows it.
type pages struct {
	*monitor.Shared
	fields *fields
	report string
	flags  *pageFlags
	at     string // address of the page; empty: there is none
	stops  []func()
}

// open starts the servers. It returns nil if no flag asks for the monitor.
func (a *app) openPages(f *pageFlags) (p *pages, err error) {
	if err := f.checkToken(); err != nil || f.http == "" && f.metrics == "" && f.report == "" {
		return nil, err
	}
	if f.report != "" {
		if err := checkWritable(f.report); err != nil {
			return nil, err
		}
	}
	p = &pages{Shared: monitor.NewShared(), report: f.report, flags: f, fields: newFields()}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for _, s := range []struct {
		flag, address, what, path string
		page                      bool
	}{{"--http", f.http, "page", "/", true}, {"--metrics", f.metrics, "metrics", "/metrics", false}} {
		if s.address == "" {
			continue
		}
		o := page.Options{Metrics: metrics.Handler(p.Shared)}
		if s.page {
			o.Source, o.Field = p.Shared, p.fields
		}
		stop, at, err := a.servePage(s.flag, localAddress(s.address), s.what, s.path, f, o)
		if err != nil {
			return nil, err
		}
		if s.page {
			p.at = at
		}
		p.stops = append(p.stops, stop)
	}
	return p, nil
}

// checkToken checks the flags of the token.
func (p *pageFlags) checkToken() error {
	given := "--http-token-file"
	if p.token != tokenRandom {
		given = "--http-token " + p.token
	}
	switch err := checkWord("http-token", p.token); {
	case err != nil:
		return usage("%w; --http-token-file FILE gives one of yours", err)
	case p.token == tokenNone && p.tokenFile != "":
		return usage("--http-token none and --http-token-file exclude each other")
	case (p.token == tokenNone || p.tokenFile != "") && p.http == "" && p.metrics == "" && !p.status:
		return usage("%s is for --http, --metrics and --status: give one of them, too", given)
	}
	return nil
}

// guard returns the guard of a server that listens at a host.
func (p *pageFlags) guard(host string) (page.Guard, error) {
	name, _ := os.Hostname()
	g := page.Guard{Names: []string{name, host}, Loopback: loopbackHost(host)}
	switch {
	case p.tokenFile != "":
		var err error
		if g.Token, err = readToken(p.tokenFile); err != nil {
			return g, badInput(err)
		}
	case p.token == tokenRandom:
		p.random = cmp.Or(p.random, rand.Text())
		g.Token = p.random
	}
	return g, nil
}

// servePage serves a page or metrics by the flags of the token, and returns its address.
func (a *app) servePage(flag, address, what, path string, f *pageFlags, o page.Options) (
	stop func(), served string, err error,
) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", usage("%s %q: want HOST:PORT, or PORT on loopback", flag, address)
	}
	if o.Guard, err = f.guard(host); err != nil {
		return nil, "", err
	}
	o.Closing = page.NewClosing()
	end, err := a.serve(flag, address, o.Guard.Token != "", page.Handler(o), func(at net.Addr) string {
		served = servedAt(address, at)
		shown := at.String()
		if t, is := at.(*net.TCPAddr); is && t.IP.IsUnspecified() {
			shown = net.JoinHostPort(o.Guard.Names[0], fmt.Sprint(t.Port))
		}
		switch {
		case o.Guard.Token == "":
			return fmt.Sprintf("%s at http://%s%s\n", what, shown, path)
		case f.tokenFile != "":
			return fmt.Sprintf("%s at http://%s%s with the token of --http-token-file\n", what, shown, path)
		}
		return fmt.Sprintf("%s at http://%s%s?token=%s\n", what, shown, path, url.QueryEscape(o.Guard.Token))
	})
	if err != nil {
		return nil, "", err
	}
	return func() { o.Closing.Close(closeTime); end() }, served, nil
}

// closeTime bounds the wait for open pages at the end of the program.
const closeTime = time.Second

// loopbackHost reports whether only processes of this host can reach a server that listens at a host.
func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// readToken reads a token from a file that nobody else can read.
func readToken(name string) (string, error) {
	f, info, err := input.Open(name, maxSecret)
	if err != nil {
		return "", openMistake("--http-token-file", name, err, "openssl rand -hex 16 makes a token")
	}
	defer f.Close()
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--http-token-file %s: others can read it: chmod 600 %s", name, spelling.File(name))
	}
	b, err := input.All(f, maxSecret)
	if err != nil {
		return "", fmt.Errorf("--http-token-file %s: %w", name, err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("--http-token-file %s: want one line of %d characters or more, such as of "+
			"openssl rand -hex 16", name, minToken)
	}
	return token, nil
}

// close ends the servers and writes the report. It does nothing on nil.
func (p *pages) close() {
	if p == nil {
		return
	}
	for _, stop := range p.stops {
		stop()
	}
	p.stops = nil
}

// report writes the report of pages; nil: none is wanted. It waits for storage that does not answer at most for the peer
// timeout.
func (a *app) report(ctx context.Context, p *pages, peerTimeout time.Duration) error {
	if p == nil || p.report == "" {
		return nil
	}
	b, err := page.Report(&page.Saved{Snapshot: p.Snapshot(), Fields: p.fields.all()})
	if err == nil {
		err = limited(ctx, patience(peerTimeout, len(b)), func() error {
			return output.Save(p.report, func(w io.Writer) error { _, err := w.Write(b); return err })
		})
	}
	if err != nil {
		return failed(fmt.Errorf("--report %s: %w", p.report, err))
	}
	return nil
}
