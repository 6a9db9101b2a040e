package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
)

// document returns the page with its scripts and styles as files of their own.
func document() []byte {
	var head bytes.Buffer
	for _, name := range styles {
		fmt.Fprintf(&head, "<link rel=\"stylesheet\" href=\"%s\">\n", name)
	}
	for _, name := range scripts {
		fmt.Fprintf(&head, "<script defer src=\"%s\"></script>\n", name)
	}
	return bytes.Replace(file("index.html"), []byte("<!--head-->"), head.Bytes(), 1)
}

// Saved is what a report holds.
type Saved struct {
	Snapshot monitor.Snapshot `json:"snapshot"`
	Fields   map[int]*Values  `json:"fields"` // by the ID of the run: a sample of the whole solution
}

// Report returns the page as one file with what it shows. A browser allows its scripts and styles by their hashes, and
// nothing else.
func Report(s *Saved) ([]byte, error) {
	data, err := json.Marshal(s) // which escapes <, so that no text ends the element
	if err != nil {
		return nil, err
	}
	var head, end bytes.Buffer
	allowed := map[string][]string{}
	embed := func(to *bytes.Buffer, kind string, names []string) {
		for _, name := range names {
			text := strings.TrimSpace(string(file(name)))
			sum := sha256.Sum256([]byte(text))
			allowed[kind] = append(allowed[kind], "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
			fmt.Fprintf(to, "<%s>%s</%s>\n", kind, text, kind)
		}
	}
	embed(&head, "style", styles)
	embed(&end, "script", scripts)
	out := bytes.Replace(file("index.html"), []byte("<!--head-->"), fmt.Appendf(nil,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src %s; style-src %s; "+
			"img-src data:; base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n%s",
		strings.Join(allowed["script"], " "), strings.Join(allowed["style"], " "), head.Bytes()), 1)
	out = bytes.Replace(out, []byte("<!--end-->"), fmt.Appendf(nil,
		"<script type=\"application/json\" id=\"saved\">%s</script>\n<!--scripts-->", data), 1)
	return bytes.Replace(out, []byte("<!--scripts-->"), end.Bytes(), 1), nil
}
