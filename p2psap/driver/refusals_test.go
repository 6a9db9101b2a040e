package driver

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// count sets every counter of a struct to 1.
func count(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(1)
		case reflect.Struct:
			count(f)
		}
	}
}

// docs/security.md lists the reasons for which input is refused.
func TestRefusalsInDocs(t *testing.T) {
	var s Stats
	count(reflect.ValueOf(&s).Elem())
	want := map[string]bool{}
	for _, r := range s.Refusals() {
		want[r.Reason] = true
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	require.NoError(t, err)
	got := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:frame|control|handshake)\\.[a-z]+)`").FindAllStringSubmatch(string(text), -1) {
		got[m[1]] = true
	}
	require.Equal(t, want, got)
}
