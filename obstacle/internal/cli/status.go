package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

const statusBytes = 64 << 20

// serveStatus serves the state of the run at --status until stop is called, by the rules of --http.
func (a *app) serveStatus(q *request, w *work, s *launch.Status) (stop func(), err error) {
	address := localAddress(q.status)
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("--status %q: want HOST:PORT, or PORT on loopback", q.status)
	}
	guard, err := q.page.guard(name)
	if err != nil {
		return nil, err
	}
	with := ""
	switch {
	case q.page.tokenFile != "":
		with = " --http-token-file " + spelling.Word(q.page.tokenFile)
	case guard.Token != "":
		with = " --http-token-file FILE, with the token " + guard.Token + " in FILE"
	}
	notice := func(at net.Addr) string {
		all := host.Addresses(at.String(), "localhost")
		return fmt.Sprintf("status at %s: obstacle stack --live %s%s\n", strings.Join(all, ", "), spelling.Word(all[0]), with)
	}
	return a.serve("--status", address, guard.Token != "", guard.Protect(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/" {
			http.NotFound(out, r)
			return
		}
		live := report.Live{Problem: w.spec.Name(), Scheme: w.scheme.Name(), Peers: w.partition.Peers(), Version: build.Version()}
		live.Fill(s)
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(live)
	})), notice)
}

// liveRun returns the state of the run at an address, or from the JSON in a file.
func (a *app) liveRun(ctx context.Context, address, tokenFile, file string) (*report.Live, error) {
	if file != "" {
		text, err := a.readAll(ctx, "--of", file, statusBytes)
		if err != nil {
			return nil, badInput(openMistake("--of", file, err, "obstacle solve … --format json > "+spelling.Word(file)+" makes one"))
		}
		live, err := report.ParseLive(text)
		if err != nil {
			return nil, usage("--of %s: not the JSON of obstacle solve: %w", file, err)
		}
		return live, nil
	}
	if err := checkAddress("--live", address); err != nil {
		return nil, err
	}
	stopped, stop := stoppable(ctx)
	defer stop()
	within, cancel := context.WithTimeout(stopped, serveTime)
	defer cancel()
	q, err := http.NewRequestWithContext(within, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return nil, badInput(err)
	}
	if tokenFile != "" {
		token, err := readToken(tokenFile)
		if err != nil {
			return nil, badInput(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(q)
	if stopped.Err() != nil {
		return nil, errInterrupted
	}
	if err != nil {
		return nil, failed(fmt.Errorf("no run answers at %s: %w (is obstacle solve --status running there?)", address,
			err))
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusUnauthorized {
		return nil, failed(fmt.Errorf("%s asks for another token: give that of the run with --http-token-file FILE", address))
	}
	if r.StatusCode != http.StatusOK {
		return nil, failed(fmt.Errorf("%s answers %s: it is not obstacle solve --status", address, r.Status))
	}
	var live *report.Live
	text, err := input.All(r.Body, statusBytes)
	if err == nil {
		live, err = report.ParseLive(text)
	}
	if err != nil {
		return nil, failed(fmt.Errorf("%s is not obstacle solve --status: %w", address, err))
	}
	return live, nil
}
