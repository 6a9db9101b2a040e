package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every mistake of a user names the thing and says what to do next, with exit code 2 and nothing on stdout.
func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("mine.yaml", "dimension: 2\ndomian: [[0, 1], [0, 1]]\n")
	write("time.yaml", "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"0\"\ntime: {end: 1, step: 3}\n")
	write("word.yaml", "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"sinn(x)\"\n")
	write("above.yaml", "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"0.5\"\n")
	write("factor.yaml", "dimension: 1\ndomain: [[0, 2]]\nobstacle: \"-1*(x>1.5)\"\n")
	write("kind.yaml", "kind: american-optoin\n")
	write("run.secret", "long enough a secret\n")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for args, want := range map[string]string{
		"slove":                                                             `no command "slove" (did you mean "solve"?)`,
		"solve":                                                             "obstacle problems lists those built in, and obstacle init my.yaml writes a file",
		"solve membrain":                                                    `no built-in problem "membrain" (did you mean "membrane"?)`,
		"solve min.yaml":                                                    `min.yaml: there is no such file (did you mean "mine.yaml"?)`,
		"check nothing.yaml":                                                "obstacle init nothing.yaml writes one to start from",
		"solve membrane --peeers 2":                                         `unknown flag: --peeers (did you mean "--peers"?); see obstacle solve --help`,
		"solve membrane --peer 2":                                           `unknown flag: --peer (did you mean "--peers"?); see obstacle solve --help`,
		"solve membrane --tolerance 1e-3":                                   `unknown flag: --tolerance (did you mean "--tol"?)`,
		"solve membrane --output x.vti":                                     `unknown flag: --output (did you mean "--out"?)`,
		"solve membrane --grid 32":                                          `unknown flag: --grid (did you mean "--n"?)`,
		"solve membrane -n 32":                                              `unknown flag: -n (did you mean "--n"?); see obstacle solve --help`,
		"solve membrane -np 4":                                              `unknown flag: -np (did you mean "--peers"?)`,
		"solve membrane -peers 4":                                           `unknown flag: -peers (did you mean "--peers"?)`,
		"solve membrane -x 4":                                               `unknown flag: -x; see obstacle solve --help`,
		"convergence membrane --timeout 5s":                                 `unknown flag: --timeout (did you mean "--max-time"?)`,
		"solve membrane --machines 2":                                       "unknown flag: --machines (it is a flag of obstacle compare, simulate)",
		"--peers 2":                                                         "unknown flag: --peers (it is a flag of obstacle calibrate, compare, explain, …)",
		"solve membrane --peers two":                                        `--peers "two": want a whole number; see obstacle solve --help`,
		"solve membrane --tol x":                                            `--tol "x": want a number, such as 0.5 or 1e-6`,
		"solve membrane --max-time 5":                                       `--max-time "5": want a time with its unit, such as 90s or 5m`,
		"solve membrane --weights a,b":                                      `--weights "a,b": want numbers, such as 1,2.5`,
		"solve membrane --peers":                                            "--peers needs a value: number of peers",
		"compare membrane --peers x":                                        `--peers "x": want whole numbers, such as 2,4`,
		"solve membrane --seed -1":                                          `--seed "-1": want a whole number, not negative`,
		"solve membrane --in-process=maybe":                                 `--in-process "maybe": want true or false`,
		"solve membrane --scheme asynch":                                    `--scheme "asynch" (did you mean "async"?)`,
		"solve membrane --method multigird":                                 `--method "multigird" (did you mean "multigrid"?)`,
		"solve membrane --method fas --n 2":                                 "a grid of [2 2 2] points is too small for a coarser one; use method schwarz",
		"solve membrane --method jacobi":                                    `--method "jacobi" (did you mean "richardson"?)`,
		"solve membrane --method MG":                                        `--method "MG" (did you mean "multigrid"?)`,
		"solve membrane --method gauss-seidel":                              `--method "gauss-seidel" (did you mean "sor"?)`,
		"solve membrane --method multigrid --omega 1.2":                     "--omega is for method sor, and the method is multigrid: leave it out, or give --method sor",
		"solve membrane --method richardson --cycle w":                      "--cycle is for method multigrid, and the method is richardson",
		"solve membrane --method sor --overlap 4":                           "--overlap is for method schwarz, and the method is sor",
		"explain membrane --method multigrid --local sor":                   "--local is for method schwarz, and the method is multigrid",
		"solve membrane --method sor --step 0.5":                            "--step is for method richardson, and the method is sor",
		"solve membrane --method sor --sweeps-per-pass 2":                   "--sweeps-per-pass is for method richardson, and the method is sor",
		"solve membrane --method schwarz --omega 1.2":                       "the method is schwarz with multigrid: leave it out, or give --local sor",
		"solve membrane --method sor --scheme async --cycle w":              "the method is schwarz with sor: leave it out, or give --local multigrid",
		"compare membrane --omega 1.2":                                      "--omega is for method sor, and the method is richardson",
		"compare membrane --methods sor,multigrid --coarse 9 --scheme sync": "--coarse is for method schwarz, and the method is sor",
		"compare membrane --model graphene-eth --machines 2 --omega 1.2":    "--omega is for method sor, and the method is richardson",
		"simulate membrane --model graphene-eth --cycle w":                  "--cycle is for method multigrid, and the method is richardson",
		"solve membrane --json":                                             `--json (did you mean "--format json"?)`,
		"solve membrane --async":                                            `--async (did you mean "--scheme async"?)`,
		"solve membrane --mode sync":                                        `--mode (did you mean "--scheme"?)`,
		"solve membrane --nproc 2":                                          `--nproc (did you mean "--peers"?)`,
		"solve membrane --network ehter":                                    `--network "ehter" (did you mean "ether"?)`,
		"solve membrane --recover locl":                                     `--recover "locl" (did you mean "local"?): want local, exact or off`,
		"solve membrane --partition slab":                                   `--partition "slab" (did you mean "slabs"?)`,
		"solve membrane --order jacoby":                                     `--order "jacoby" (did you mean "jacobi"?)`,
		"solve membrane --local sorr":                                       `--local "sorr" (did you mean "sor"?)`,
		"solve membrane --cycle x":                                          `--cycle "x": want v, w or auto`,
		"solve membrane --protect alway":                                    `--protect "alway" (did you mean "always"?)`,
		"solve membrane --balance onn":                                      `--balance "onn" (did you mean "on"?)`,
		"solve membrane --step-mode nevr":                                   `--step-mode "nevr" (did you mean "never"?)`,
		"solve membrane --format jsn":                                       `--format "jsn" (did you mean "json"?)`,
		"solve membrane --log-level inf":                                    `--log-level "inf" (did you mean "info"?)`,
		"solve membrane --log-format txet":                                  `--log-format "txet" (did you mean "text"?)`,
		"solve membrane --log-level ":                                       `--log-level ""`,
		"solve membrane --congestion cubik":                                 `--congestion "cubik" (did you mean "cubic"?)`,
		"solve membrane --ib-mode segment":                                  `--ib-mode "segment" (did you mean "segments"?)`,
		"solve membrane --param c=1":                                        `problem membrane has no parameter "c"`,
		"solve membrane --out x.vtk":                                        `no format for ".vtk"; the extensions known are`,
		"solve membrane --rendezvous nohost":                                `--rendezvous "nohost": want HOST:PORT, such as 10.0.0.1:7000`,
		"solve membrane --rendezvous a:1":                                   "obstacle secret FILE makes one",
		"solve membrane --rendezvous a:1 --secret-file run.secrte": `--secret-file run.secrte: there is no such file; ` +
			`obstacle secret run.secrte makes one`,
		"solve membrane --metrics a:b:c":                   `--metrics "a:b:c": want HOST:PORT`,
		"solve membrane --metrics " + busy.Addr().String(): "give an address of this host with a free port, or port 0",
		"peer --rendezvous a --secret-file run.secret":     `--rendezvous "a": want HOST:PORT`,
		"peer --rendezvous a:1 --secret-file nothing":      "--secret-file nothing: there is no such file; obstacle secret nothing",
		"attach nohost --secret-file run.secret":           `attach "nohost": want HOST:PORT`,
		"attach a:1 nohost --secret-file run.secret":       `attach "nohost": want HOST:PORT`,
		"attach --secret-file run.secret":                  "attach needs the address of the launcher",
		"check mine.yaml":                                  `mine.yaml:2: unknown key "domian" (did you mean "domain"?)`,
		"check time.yaml":                                  `time.yaml:4: time: unknown key "step" (did you mean "steps"?)`,
		"check word.yaml":                                  `unknown function "sinn" (did you mean "sin"?)`,
		"check above.yaml":                                 "; give boundary: obstacle, which holds u at the obstacle there",
		"check factor.yaml":                                "write x > 1.5 ? value : other, such as (x > 1.5 ? 1 : 0)",
		"check kind.yaml":                                  `(did you mean "american-option"?)`,
		"simulate membrane --model grapene-eth":            `(did you mean "graphene-eth"?)`,
		"stack --scheme syn":                               `--scheme "syn" (did you mean "sync"?)`,
		"stack --locality interr":                          `--locality "interr" (did you mean "inter"?)`,
		"stack --network ehter":                            `--network "ehter" (did you mean "ether"?)`,
		"stack --of nothing":                               "--of nothing: there is no such file; obstacle solve … --format json > nothing makes one",
		"calibrate --scheme asynk":                         `--scheme "asynk" (did you mean "async"?)`,
		"completion basch":                                 `obstacle completion has no "basch" (did you mean "bash"?)`,
		"init x.yaml --kind membrain":                      `--kind "membrain" (did you mean "membrane"?)`,
	} {
		code, out, errs := call(strings.Split(args, " ")...)
		require.Equal(t, ExitUsage, code, "%s: %s", args, errs)
		require.Empty(t, out, args)
		require.Contains(t, errs, want, args)
		require.True(t, strings.HasPrefix(errs, "obstacle: "), errs)
	}
	_, err = os.Stat(filepath.Join(".", "x.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
