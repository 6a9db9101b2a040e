package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

const statusBytes = 64 << 20

// serveStatus serves the state of the run at --status until stop is called.
func (a *app) serveStatus(address string, w *work, s *launch.Status) (stop func(), err error) {
	notice := func(at net.Addr) string { return fmt.Sprintf("status at %[1]v: obstacle stack --live %[1]v\n", at) }
	return a.serve("--status", address, false, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/" {
			http.NotFound(out, r)
			return
		}
		live := report.Live{Problem: w.spec.Name(), Scheme: w.scheme.Name(), Peers: w.partition.Peers(), Version: build.Version()}
		live.Fill(s)
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(live)
	}), notice)
}

// liveRun returns the state of the run at an address, or from the JSON in a file.
func (a *app) liveRun(ctx context.Context, address, file string) (*report.Live, error) {
	live := &report.Live{}
	if file != "" {
		in := a.in
		if file != "-" {
			f, err := os.Open(file)
			if err != nil {
				return nil, badInput(openMistake("--of", file, err, "obstacle solve … --format json > "+file+" makes one"))
			}
			defer f.Close()
			in = f
		}
		if err := json.NewDecoder(io.LimitReader(in, statusBytes)).Decode(live); err != nil {
			return nil, usage("--of %s: not the JSON of obstacle solve: %w", file, err)
		}
		return live, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, usage("--live %q: want the HOST:PORT of obstacle solve --status", address)
	}
	ctx, cancel := context.WithTimeout(ctx, serveTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return nil, badInput(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(q)
	if err != nil {
		return nil, failed(fmt.Errorf("no run answers at %s: %w (is obstacle solve --status running there?)", address,
			err))
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, failed(fmt.Errorf("%s answers %s: it is not obstacle solve --status", address, r.Status))
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, statusBytes)).Decode(live); err != nil {
		return nil, failed(errors.Join(fmt.Errorf("%s is not obstacle solve --status", address), err))
	}
	return live, nil
}
