//go:build linux

package obstacle_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hangingDirectory is the environment variable with a directory on which the program mounts a file system that never answers.
// The program must be alone in a mount namespace.
const hangingDirectory = "OBSTACLE_TEST_HANGING_DIRECTORY"

// cannotMount is the exit code of a program that may not mount a file system.
const cannotMount = 77

// mountHanging mounts a file system in user space whose server never reads a request, so that every access waits until the
// process ends.
func mountHanging() {
	directory := os.Getenv(hangingDirectory)
	if directory == "" {
		return
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)
		err = unix.Mount("hangs", directory, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot mount a file system in user space:", err)
		os.Exit(cannotMount)
	}
}

// onHanging returns a command of the program in a user and mount namespace of its own, where directory hangs.
func onHanging(directory string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	c, errs := exec.Command(os.Args[0], args...), &bytes.Buffer{}
	c.Stderr = errs
	c.Env = append(os.Environ(), asProgram+"="+quickly, hangingDirectory+"="+directory)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return c, errs
}

// The program names a file whose storage does not answer and ends, for every command and flag that names one.
func TestStorageThatHangsBeforeTheRun(t *testing.T) {
	hangs := t.TempDir()
	for _, line := range []string{
		"solve DIR/p.yaml", "solve membrane --out DIR/u.vti", "solve membrane --checkpoint DIR/run", "solve membrane --report DIR/r.html",
		"solve membrane --trace DIR/t", "solve membrane --initial DIR/u.npy", "solve membrane --topology DIR/t",
		"solve membrane --hosts DIR/hosts", "solve membrane --rendezvous 127.0.0.1:0 --secret-file DIR/s",
		"solve membrane --checkpoint DIR", "resume DIR", "init DIR/p.yaml", "secret DIR/s", "check DIR/p.yaml", "explain DIR/p.yaml",
		"compare membrane --latex DIR/t.tex", "compare membrane --out DIR/f.svg", "simulate DIR/p.yaml", "simulate membrane --model DIR/c.yaml",
		"peer --rendezvous 127.0.0.1:1 --secret-file DIR/s", "stack --of DIR/a.json", "trace stats DIR/t.0", "man --dir DIR/man",
		"solve chain --out DIR/x", "calibrate --out DIR/c.yaml",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(strings.ReplaceAll(line, "DIR", hangs))
			if c := args[0]; c == "solve" || c == "resume" || c == "compare" {
				args = append(args, "--peer-timeout", "100ms")
			} else if testing.Short() {
				t.Skip("it waits for as long as a command without --peer-timeout waits")
			}
			c, errs := onHanging(hangs, args...)
			err := c.Run()
			if errors.Is(err, syscall.EPERM) || c.ProcessState != nil && c.ProcessState.ExitCode() == cannotMount {
				t.Skipf("NOT CHECKED: %v %s", err, errs)
			}
			require.Equal(t, 1, c.ProcessState.ExitCode(), "%s", errs)
			require.Contains(t, errs.String(), hangs)
			require.Contains(t, errs.String(), "its file system has not answered for")
		})
	}
}
