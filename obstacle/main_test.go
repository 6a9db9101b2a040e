//go:build linux

package obstacle_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/cli"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems"
)

// asProgram is the environment variable that makes this test binary the program, so that tests run real processes,
// which start their peers by running the same binary.
const asProgram = "OBSTACLE_TEST_AS_PROGRAM"

// The values of asProgram: the program as it is, or with quickIdentity.
const (
	asItIs  = "as it is"
	quickly = "quickly"
)

// mode returns the value of asProgram for processes. Stretching secrets is most of the work of short runs by hand, so
// with -short only a test that sets asProgram itself has processes that do it.
func mode() string {
	if set := os.Getenv(asProgram); set != "" {
		return set
	}
	if testing.Short() {
		return quickly
	}
	return asItIs
}

// identify is what makes the identities of this mode from secrets.
func identify(program, fingerprint string, secret []byte) (rendezvous.Identity, error) {
	if mode() == quickly {
		return quickIdentity(program, fingerprint, secret)
	}
	return rendezvous.NewIdentity(program, fingerprint, secret)
}

// quickIdentity is rendezvous.NewIdentity without stretching the secret.
func quickIdentity(program, fingerprint string, secret []byte) (rendezvous.Identity, error) {
	return rendezvous.NewKeyIdentity(program, fingerprint, sha256.Sum256(secret))
}

// gated returns what the program knows by name. The methods have the gate and the lie of the environment, if there are any.
func gated() *catalog.Set {
	c := catalog.New()
	methods, err := gate.Methods(c.Methods)
	if err != nil {
		panic(err)
	}
	c.Methods = lies(methods)
	if err := c.Problems.AddIteration(problems.Builtin{Name: "chain", Summary: "a line of averages"}, newChain); err != nil {
		panic(err)
	}
	return c
}

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case asItIs:
		limitFiles()
		mountHanging()
		os.Exit(obstacle.Main(gated()))
	case quickly:
		limitFiles()
		mountHanging()
		os.Exit(cli.MainWith(context.Background(), quickIdentity, os.Args[1:], gated(), os.Stdin, os.Stdout, os.Stderr))
	}
	// Parallel tests mostly wait for timeouts and links: run more of them than there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"obstacle": func() { os.Exit(obstacle.Main(catalog.New())) }})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv(asProgram, asItIs)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "rdma" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			_, err := os.Stat("/sys/class/infiniband")
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code": code,
			"json": jsonField,
		},
	})
}

// code runs a command and requires an exit code: code N obstacle ARGS…
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var is bool
		if got, is = exitStatus(err); !is {
			ts.Fatalf("%v", err)
		}
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func exitStatus(err error) (int, bool) {
	e, is := err.(interface{ ExitCode() int })
	if !is {
		return 0, false
	}
	return e.ExitCode(), true
}

// jsonField checks a field of the JSON that the last command printed: json PATH is|below|above|length|has VALUE. PATH
// holds names and indices, separated by dots.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json PATH is|below|above|length|has VALUE")
	}
	var v any
	text := ts.ReadFile("stdout")
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("stdout is not JSON: %v\n%s", err, text)
	}
	if d.More() {
		ts.Fatalf("more than one object on stdout")
	}
	v, err := lookup(v, args[0])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if ok := holds(v, args[1], args[2]); ok == neg {
		ts.Fatalf("%s is %v: %s %s: %v", args[0], v, args[1], args[2], ok)
	}
}

func lookup(v any, path string) (any, error) {
	for _, step := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, known := at[step]
			if !known {
				return nil, fmt.Errorf("%s: no field %s", path, step)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, fmt.Errorf("%s: no element %s of %d", path, step, len(at))
			}
			v = at[i]
		default:
			return nil, fmt.Errorf("%s: nothing below %v", path, v)
		}
	}
	return v, nil
}

func holds(v any, op, want string) bool {
	number, _ := strconv.ParseFloat(want, 64)
	got, isNumber := v.(float64)
	switch op {
	case "is":
		b, _ := json.Marshal(v)
		return string(b) == want || fmt.Sprint(v) == want
	case "below":
		return isNumber && got < number
	case "above":
		return isNumber && got > number
	case "length":
		list, is := v.([]any)
		return is && len(list) == int(number)
	case "has":
		return strings.Contains(fmt.Sprint(v), want)
	}
	return false
}
