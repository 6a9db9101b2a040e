package shm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// childVariable makes the test binary one end of a connection: TestMain runs it instead of the tests.
const childVariable = "SHM_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

// child connects with its parent over offers on standard input and output, and sends every frame back.
func child() {
	l, err := Open(Config{Name: os.Getenv(childVariable)})
	if err == nil {
		var addr microproto.LinkAddr
		if addr, err = exchange(l, "parent", os.Stdin, os.Stdout); err == nil {
			err = echo(l, addr)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func exchange(l *Link, peer string, in io.Reader, out io.Writer) (microproto.LinkAddr, error) {
	own, err := l.Offer(peer)
	if err != nil {
		return 0, err
	}
	if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(own)))); err != nil {
		return 0, err
	}
	if _, err := out.Write(own); err != nil {
		return 0, err
	}
	var n [4]byte
	if _, err := io.ReadFull(in, n[:]); err != nil {
		return 0, err
	}
	theirs := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(in, theirs); err != nil {
		return 0, err
	}
	return l.Accept(theirs)
}

func echo(l *Link, to microproto.LinkAddr) error {
	batch := make([]microproto.Frame, 16)
	for {
		n, err := l.AwaitRecv(batch)
		if err != nil {
			return err
		}
		for i := range batch[:n] {
			f := batch[i]
			f.Peer, f.Mode = to, microproto.ModeSynchronous
			if len(f.Data) == valueBytes {
				f.Mode, f.Value = microproto.ModeAsynchronous, 1
			}
			for {
				k, err := l.Send([]microproto.Frame{f})
				if err != nil {
					return err
				}
				if k == 1 {
					break
				}
				room := make(chan struct{})
				l.Writable(func() { close(room) })
				<-room
			}
		}
	}
}

// valueBytes is the length of the values in these tests; frames of the lane have others.
const valueBytes = 4096

// start starts the other end as a process and connects with it. The lower name dials.
func start(t *testing.T, l *Link, name string) (*exec.Cmd, microproto.LinkAddr) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+name)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	addr, err := exchange(l, name, bufio.NewReader(out), in)
	require.NoError(t, err)
	await.Until(t, func() bool { return l.isConnected(addr) }, "the two processes to meet")
	return c, addr
}

// Frames of all sizes go there and back between two processes, asleep and awake, in order, and full lanes empty again.
func TestTwoProcesses(t *testing.T) {
	for _, name := range []string{"child", "zoe"} {
		l := kinds()["shared memory"]()(t, Config{Name: "parent"})
		_, to := start(t, l, name)
		const frames = 3000
		go func() {
			r := rand.New(rand.NewPCG(1, 2))
			for i := range frames {
				b := make([]byte, 8+r.IntN(1<<r.IntN(15)))
				if len(b) == valueBytes {
					b = b[1:]
				}
				binary.LittleEndian.PutUint64(b, uint64(i))
				for sent := 0; sent == 0; {
					f := frame(to, b)
					sent, _ = l.Send([]microproto.Frame{f})
					if sent == 0 {
						room := make(chan struct{})
						l.Writable(func() { close(room) })
						<-room
					}
				}
			}
		}()
		batch := make([]microproto.Frame, 8)
		for next := uint64(0); next < frames; {
			n, err := l.AwaitRecv(batch)
			require.NoError(t, err)
			for i := range batch[:n] {
				require.Equal(t, next, binary.LittleEndian.Uint64(batch[i].Data))
				next++
				batch[i].Release()
			}
		}
	}
}

// A stopped process blocks no value, and reads the newest when it continues.
func TestStoppedProcess(t *testing.T) {
	l := kinds()["shared memory"]()(t, Config{Name: "parent"})
	c, to := start(t, l, "child")
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	const versions = 2000
	for v := uint64(1); v <= versions; v++ {
		sendOne(t, l, value(to, 1, pattern(v, valueBytes)))
	}
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	batch := make([]microproto.Frame, 8)
	for last := uint64(0); last < versions; {
		n, err := l.AwaitRecv(batch)
		require.NoError(t, err)
		for i := range batch[:n] {
			v, whole := versionOf(batch[i].Data)
			require.True(t, whole)
			require.Greater(t, v, last)
			last = v
			batch[i].Release()
		}
	}
}

// A process that is killed at any instant is reported, its peer goes on, and nothing remains.
func TestKilledProcess(t *testing.T) {
	l := kinds()["shared memory"]()(t, Config{Name: "parent"})
	events := make(chan microproto.LinkEvent, 1)
	l.Watch(func(e microproto.LinkEvent) { events <- e })
	files, mappings := descriptorsAndMappings(t)
	r := rand.New(rand.NewPCG(3, 4))
	batch := make([]microproto.Frame, 8)
	for range 12 {
		c, to := start(t, l, "child")
		for i := range uint64(r.IntN(400)) {
			if n, err := l.Send([]microproto.Frame{value(to, 1, pattern(i+1, valueBytes))}); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			_, _ = l.Send([]microproto.Frame{frame(to, make([]byte, 1+r.IntN(9000)))})
			n, err := l.TryRecv(batch)
			require.NoError(t, err)
			for k := range batch[:n] {
				batch[k].Release()
			}
		}
		require.NoError(t, c.Process.Kill())
		e := <-events
		require.Equal(t, to, e.Peer)
		require.ErrorIs(t, e.Err, errGone)
		_, _ = l.Send([]microproto.Frame{value(to, 1, pattern(1, valueBytes)), frame(to, []byte{1})})
		l.Forget(to)
		_ = c.Wait()
	}
	await.Until(t, func() bool {
		f, m := descriptorsAndMappings(t)
		return f <= files && m <= mappings
	}, "every descriptor and mapping to be closed")
}

// Memory that the other end could change is not mapped.
func TestMapRemote(t *testing.T) {
	const n = 4 * pageBytes
	make := func(size int64, allocate bool, seal int) *os.File {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		require.NoError(t, unix.Ftruncate(fd, size))
		if allocate {
			require.NoError(t, unix.Fallocate(fd, 0, 0, size))
		}
		if seal != 0 {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal)
			require.NoError(t, err)
		}
		f := os.NewFile(uintptr(fd), "test")
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	good, err := mapRemote(make(n, true, seals), n)
	require.NoError(t, err)
	good.free()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for what, f := range map[string]*os.File{
		"without 0x30":        make(n, true, seals&^unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_WRITE),
		"without 0x2":         make(n, true, seals&^unix.F_SEAL_SHRINK),
		"the seals 0x0":       make(n, true, 0),
		"bytes instead of":    make(n-pageBytes, true, seals),
		"are allocated":       make(n, false, seals),
		"cannot be sealed":    null,
		"16385 bytes instead": make(n+1, true, seals),
	} {
		if what == "without 0x30" {
			what = "without 0x10"
		}
		_, err := mapRemote(f, n)
		require.ErrorContains(t, err, what)
	}
}

// An outbox is writable for its owner's mapping only.
func TestOutboxIsSealed(t *testing.T) {
	o, err := newSharedOutbox(pageBytes)
	require.NoError(t, err)
	defer o.free()
	word(o.bytes, 0).Store(7)
	fd := int(o.file.Fd())
	_, err = unix.Mmap(fd, 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.ErrorIs(t, err, unix.EPERM)
	_, err = unix.Pwrite(fd, []byte{1}, 0)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, unix.Ftruncate(fd, 0), unix.EPERM)
	require.ErrorIs(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, pageBytes), unix.EPERM)
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	if again, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		_, err = again.WriteAt([]byte{1}, 0)
		require.ErrorIs(t, err, unix.EPERM)
		_ = again.Close()
	}
	in, err := mapRemote(o.file, pageBytes)
	require.NoError(t, err)
	require.EqualValues(t, 7, word(in.bytes, 0).Load())
	require.Error(t, unix.Mprotect(in.bytes, unix.PROT_READ|unix.PROT_WRITE))
	in.free()
}

// stranger connects to a link's socket, as another user if uid is not negative.
func stranger(t *testing.T, l *Link, uid int, greeting []byte, f *os.File) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if uid >= 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				done <- errno
				return
			}
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: l.self.socket})
		}
		if err == nil {
			_ = unix.Sendmsg(fd, greeting, unix.UnixRights(int(f.Fd())), nil, unix.MSG_NOSIGNAL) // may be refused before
			var b [1]byte
			n, _ := unix.Read(fd, b[:]) // until the link hangs up
			if n > 0 {
				err = fmt.Errorf("the link answered")
			}
		}
		_ = unix.Close(fd)
		done <- err
	}()
	require.NoError(t, <-done)
}

// Who does not have the token, or is another user, is refused, and the peer connects afterwards.
func TestStrangersAreRefused(t *testing.T) {
	open := kinds()["shared memory"]()
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	_, err := b.Offer("a")
	require.NoError(t, err)
	o, err := newSharedOutbox(b.layout.total)
	require.NoError(t, err)
	defer o.free()
	right := append([]byte(greetingMagic), b.named["a"].token[:]...)
	wrong := append([]byte(greetingMagic), make([]byte, 32)...)
	stranger(t, b, -1, wrong, o.file)
	stranger(t, b, -1, right[:20], o.file)
	refused := uint64(2)
	if os.Geteuid() == 0 {
		stranger(t, b, 65534, right, o.file)
		refused++
	}
	await.Until(t, func() bool { return b.Stats().Refused == refused }, "%d refusals", refused)
	toB, _ := join(t, a, b)
	sendOne(t, a, frame(toB, []byte{1}))
}

// An end whose token is right but whose memory is not costs its connection.
func TestUnsealedMemoryIsRefused(t *testing.T) {
	open := kinds()["shared memory"]()
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	events := make(chan microproto.LinkEvent, 1)
	b.Watch(func(e microproto.LinkEvent) { events <- e })
	offer, err := a.Offer("b")
	require.NoError(t, err)
	_, err = b.Offer("a")
	require.NoError(t, err)
	_, err = b.Accept(offer)
	require.NoError(t, err)
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Connect(fd, &unix.SockaddrUnix{Name: b.self.socket}))
	right := append([]byte(greetingMagic), b.named["a"].token[:]...)
	require.NoError(t, unix.Sendmsg(fd, right, unix.UnixRights(int(f.Fd())), nil, 0))
	require.ErrorContains(t, (<-events).Err, "the other end's memory")
}

// What a host lacks is an error that names it.
func TestReasons(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	limited := func(resource int, limit uint64, f func()) {
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(resource, &old))
		low := old
		low.Cur = limit
		require.NoError(t, unix.Setrlimit(resource, &low))
		f()
		require.NoError(t, unix.Setrlimit(resource, &old))
	}
	var err, usable error
	limited(unix.RLIMIT_FSIZE, 1<<20, func() { _, err = newSharedOutbox(2 << 20) })
	require.ErrorContains(t, err, "cannot allocate 2097152 bytes of shared memory (fallocate): file too large")
	l := kinds()["shared memory"]()(t, Config{Name: "a"})
	limited(unix.RLIMIT_NOFILE, 3, func() {
		_, err = l.Offer("b")
		usable = Usable()
	})
	require.ErrorContains(t, err, "cannot create anonymous shared memory (memfd_create): too many open files")
	require.ErrorContains(t, usable, "too many open files")
	_, err = l.Offer("b")
	require.NoError(t, err)
}

// Only ends of one host, namespace, user and layout are connected, and the reason says what differs.
func TestIncompatible(t *testing.T) {
	open := kinds()["shared memory"]()
	l := open(t, Config{Name: "a"})
	for what, change := range map[string]func(o *offer){
		"another one":           func(o *offer) { o.Host.Boot[0]++ },
		"network namespace":     func(o *offer) { o.Host.Namespace[1]++ },
		"the user number":       func(o *offer) { o.User++ },
		"same name":             func(o *offer) { o.name = "a" },
		"the same sizes":        func(o *offer) { o.Sizes.LaneBytes *= 2 },
		"has version 4":         func(o *offer) { o.Version++ },
		"memory of one process": func(o *offer) { o.socket = "" },
		"it has no name":        func(o *offer) { o.name = "" },
		"it has no socket":      func(o *offer) { o.socket = strings.Repeat("x", 101) },
	} {
		o := l.self
		o.name = "b"
		change(&o)
		_, err := l.Accept(o.append(nil))
		require.ErrorContains(t, err, what)
	}
}

// Any bytes are an offer that encodes to them, or an error.
func FuzzOffer(f *testing.F) {
	o := offer{name: "b", socket: "@p2pdc-x", offerFields: offerFields{Version: layoutVersion, User: 7}}
	f.Add(o.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOffer(b); err == nil {
			require.Equal(t, b, o.append(nil))
		}
	})
}
