package launch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// An answer is kept until it was fetched, for the time of --hold, or until the process is asked to end. Those that are
// connected then have some time to fetch it.
func TestHeldAnswer(t *testing.T) {
	const never, late, soon = -1, time.Hour, time.Second
	for name, c := range map[string]struct {
		asked, fetched time.Duration // since the end of the run
		attached       bool          // the one that fetches the answer is connected from the start
		resumable      bool
		at             time.Duration // of the end of the wait
		text           string
	}{
		"fetched":                      {asked: never, fetched: soon, at: soon},
		"fetched by one that waits":    {asked: never, fetched: soon, attached: true, at: soon},
		"too late":                     {asked: never, fetched: never, at: late, text: "within 1h0m0s (--hold)"},
		"asked to end":                 {asked: soon, fetched: never, at: soon, text: "(converged) is lost: this process was asked to end"},
		"asked to end, fetched":        {asked: soon, fetched: 3 * soon, attached: true, at: 3 * soon},
		"asked to end, not fetched":    {asked: soon, fetched: late, attached: true, at: soon + drainTime, text: "is lost"},
		"a checkpoint":                 {asked: 0, fetched: never, resumable: true, text: "obstacle resume D, on H"},
		"a checkpoint, fetched":        {asked: 0, fetched: soon, attached: true, resumable: true, at: soon, text: "obstacle resume D"},
		"a checkpoint, not fetched":    {asked: 0, fetched: late, attached: true, resumable: true, at: drainTime, text: "obstacle resume D"},
		"a checkpoint, asked too late": {asked: soon, fetched: never, resumable: true, at: soon, text: "obstacle resume D"},
	} {
		for _, signal := range []string{"SIGTERM", "SIGINT", "second"} {
			if signal != "SIGTERM" && c.asked <= 0 {
				continue
			}
			t.Run(name+" "+signal, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					leave, interrupt := make(chan struct{}), make(chan struct{})
					ask := func() { close(leave) }
					switch signal {
					case "SIGINT":
						ask = func() { close(interrupt) }
					case "second":
						ask = cancel
					}
					r := &shell{run: &run{Plan: Plan{Log: zerolog.Nop()}}}
					r.final.init()
					requests := [2]<-chan struct{}{leave, interrupt}
					if c.asked == 0 {
						ask()
						requests[0] = nil
					} else if c.asked > 0 {
						time.AfterFunc(c.asked, ask)
					}
					if c.attached {
						require.True(t, r.final.enter())
					}
					if c.fetched > 0 {
						time.AfterFunc(c.fetched, func() {
							if c.attached {
								defer r.final.leave()
							}
							r.final.fetched <- struct{}{}
						})
					}
					o := &Outcome{Reason: Converged}
					if o.Resumable = c.resumable; c.resumable {
						o.Checkpoint = &Saved{Directory: "D", Host: "H"}
					}
					begin := time.Now()
					err := r.hold(ctx, &Succession{Hold: time.Hour, Leave: leave}, o, requests)
					if signal == "second" && c.asked > 0 { // at once
						require.Equal(t, c.asked, time.Since(begin))
						require.Error(t, err)
						return
					}
					require.Equal(t, c.at, time.Since(begin))
					if c.text == "" {
						require.NoError(t, err)
						return
					}
					require.ErrorContains(t, err, c.text)
					require.Equal(t, c.resumable, errors.Is(err, ErrStopped))
					require.False(t, r.final.enter(), "nobody is let in whose connection ends with the process")
				})
			})
		}
	}
}
