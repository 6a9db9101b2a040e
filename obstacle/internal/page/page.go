// Package page serves the live page of a program's runs, and writes the same page as one file.
//
// The page is embedded and needs no build step. It loads nothing from elsewhere: a strict content security policy
// forbids it. Everything that it shows is in the JSON of package monitor, which it gets as server-sent events, and all
// texts are set as text, never as markup.
package page

import (
	"cmp"
	"embed"
	"net/http"
	"strconv"
)

//go:embed static
var static embed.FS

// Files of the page, in the order in which they are loaded.
var (
	scripts = []string{"uplot.js", "state.js", "draw.js", "charts.js", "panels.js", "field.js", "surface.js", "main.js"}
	styles  = []string{"uplot.css", "page.css"}
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options describe what is served.
type Options struct {
	Source  Source       // of the page; nil: there is no page
	Field   Field        // of the page; nil: no values of the solution are known
	Metrics http.Handler // of /metrics
	Guard   Guard
	Closing *Closing // ends the event streams; nil: nothing does
}

// Handler serves the page at /, what it needs, and /metrics.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	if o.Source != nil {
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
			serve(w, "text/html; charset=utf-8", document())
		})
		for _, name := range scripts {
			mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
				serve(w, "text/javascript; charset=utf-8", file(name))
			})
		}
		for _, name := range styles {
			mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
				serve(w, "text/css; charset=utf-8", file(name))
			})
		}
		mux.Handle("GET /events", events{o.Source, cmp.Or(o.Closing, NewClosing())})
		mux.Handle("GET /field", fieldHandler{o.Field})
	}
	return o.Guard.Protect(mux)
}

func serve(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// file returns an embedded file, which exists.
func file(name string) []byte {
	b, err := static.ReadFile("static/" + name)
	if err != nil {
		panic(err)
	}
	return b
}
