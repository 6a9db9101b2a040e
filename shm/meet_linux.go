package shm

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxGreetings bounds connections whose other end has not shown its token.
	maxGreetings = 16
	greetingTime = 5 * time.Second
)

// greetingMagic begins the first message of each end, which carries the token of the other end's offer
// and this end's outbox.
const greetingMagic = "p2pdc shm 1\n"

// socketMeeting connects ends over an abstract Unix socket. The end with the lower name dials.
type socketMeeting struct {
	link      *Link
	listener  *net.UnixListener
	greetings chan struct{}
}

// greeted is a connection whose other end has shown the token of this end's offer.
type greeted struct {
	conn *net.UnixConn
	file *os.File // the other end's outbox
}

func (g *greeted) close() {
	_ = g.conn.Close()
	if g.file != nil {
		_ = g.file.Close()
	}
}

func listen(l *Link) (meeting, string, error) {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	name := "@p2pdc-" + hex.EncodeToString(b[:])
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: name, Net: "unixpacket"})
	if err != nil {
		return nil, "", fmt.Errorf("shm: cannot listen at a Unix socket: %w", err)
	}
	m := &socketMeeting{link: l, listener: listener, greetings: make(chan struct{}, maxGreetings)}
	go m.serve()
	return m, name, nil
}

func (m *socketMeeting) close() { _ = m.listener.Close() }

// start dials, or takes the connection of an end that was faster than its offer. The locks are held.
func (m *socketMeeting) start(p *peer) {
	g, _ := p.pending.(*greeted)
	p.pending = nil
	switch {
	case m.link.config.Name < p.remote.name:
		if g != nil {
			g.close() // the other end should not have dialled
		}
		go m.dial(p, p.round, *p.remote, p.takeFile())
	case g != nil:
		go m.answer(p, p.round, g, p.remote.Token, p.takeFile())
	}
}

// takeFile passes the descriptor of this end's outbox to the caller, who sends and closes it.
func (p *peer) takeFile() *os.File {
	f := p.out.file
	p.out.file = nil
	return f
}

// serve accepts connections until the link is closed. Beyond the bound they are closed at once.
func (m *socketMeeting) serve() {
	for {
		conn, err := m.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-m.link.done:
				return
			}
		}
		select {
		case m.greetings <- struct{}{}:
			go func() {
				m.greet(conn)
				<-m.greetings
			}()
		default:
			m.link.count.Refused.Add(1)
			_ = conn.Close()
		}
	}
}

// greet takes a connection whose other end shows the token of one of this end's offers.
func (m *socketMeeting) greet(conn *net.UnixConn) {
	l := m.link
	g := &greeted{conn: conn}
	_ = conn.SetReadDeadline(time.Now().Add(greetingTime))
	t, err := g.receive(l.self.User)
	_ = conn.SetReadDeadline(time.Time{})
	defer l.lockAll()()
	p := l.tokens[t]
	if err != nil || p == nil || p.bell != nil || l.closed.Load() ||
		p.remote != nil && l.config.Name < p.remote.name {
		l.count.Refused.Add(1)
		g.close()
		return
	}
	if p.pending != nil {
		p.pending.close()
	}
	if p.pending = g; p.remote != nil {
		m.start(p)
	}
}

// receive receives the other end's greeting, after it has checked the user of its process.
func (g *greeted) receive(user uint32) (t token, err error) {
	raw, err := g.conn.SyscallConn()
	if err != nil {
		return t, err
	}
	var their *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		their, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil || err != nil {
		return t, errors.Join(controlErr, err)
	}
	if their.Uid != user {
		return t, fmt.Errorf("%w: the socket's other end has the user number %d, this one %d", ErrUser, their.Uid, user)
	}
	b, control := make([]byte, len(greetingMagic)+len(t)+1), make([]byte, unix.CmsgSpace(4*8))
	n, k, flags, _, err := g.conn.ReadMsgUnix(b, control)
	files := receivedFiles(control[:max(k, 0)])
	if err == nil && (len(files) != 1 || flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 || n != len(b)-1 ||
		string(b[:len(greetingMagic)]) != greetingMagic) {
		err = fmt.Errorf("the other end sent %d bytes and %d descriptors as a greeting", n, len(files))
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return t, err
	}
	g.file = files[0]
	copy(t[:], b[len(greetingMagic):])
	return t, nil
}

// receivedFiles returns the descriptors in control messages.
func receivedFiles(control []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		numbers, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range numbers {
			files = append(files, os.NewFile(uintptr(fd), "outbox"))
		}
	}
	return files
}

// send sends this end's greeting.
func (g *greeted) send(t token, out *os.File) error {
	_, _, err := g.conn.WriteMsgUnix(append([]byte(greetingMagic), t[:]...), unix.UnixRights(int(out.Fd())), nil)
	return err
}

// dial connects with the other end, whose token it shows.
func (m *socketMeeting) dial(p *peer, round uint64, remote offer, out *os.File) {
	defer out.Close()
	l := m.link
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: remote.socket, Net: "unixpacket"})
	if err != nil {
		l.failRound(p, round, fmt.Errorf("cannot reach the other end's socket: %w", err))
		return
	}
	g := &greeted{conn: conn}
	unlock := l.lockAll()
	if p.round != round {
		unlock()
		g.close()
		return
	}
	p.pending = &greeted{conn: conn} // Forget and Close end the wait for the answer
	own := p.token
	unlock()
	err = g.send(remote.Token, out)
	var t token
	if err == nil {
		t, err = g.receive(l.self.User)
	}
	if err == nil && t != own {
		err = errors.New("the socket's other end does not know this end's token")
	}
	m.complete(p, round, g, err)
}

// answer connects with an end that has dialled.
func (m *socketMeeting) answer(p *peer, round uint64, g *greeted, theirs token, out *os.File) {
	defer out.Close()
	m.complete(p, round, g, g.send(theirs, out))
}

// complete maps the other end's outbox unless err is set, and attends to the connection until it ends.
func (m *socketMeeting) complete(p *peer, round uint64, g *greeted, err error) {
	l := m.link
	var in outbox
	var b *socketBell
	if err == nil {
		in, err = mapRemote(g.file, l.layout.total)
	}
	if err == nil {
		b, err = newSocketBell(g.conn)
	}
	unlock := l.lockAll()
	current := p.round == round && !l.closed.Load()
	if current {
		p.pending = nil
		if err == nil {
			err = p.connected(in, b)
		}
		if err != nil {
			l.fail(p, err)
		}
	}
	unlock()
	if g.file != nil {
		_ = g.file.Close()
	}
	if err != nil || !current {
		in.free()
		_ = g.conn.Close()
	}
	l.callWritableIfRoom()
	if err == nil && current {
		l.attend(p, round, g.conn)
	}
}

// attend receives what wakes this end until the connection ends. The kernel ends it with the other process.
func (l *Link) attend(p *peer, round uint64, conn *net.UnixConn) {
	var b [lineBytes]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			l.failRound(p, round, errGone)
			return
		}
		l.wakeReceiver()
		l.callWritableIfRoom()
	}
}

// socketBell wakes the other end by a byte over the socket. An eventfd would be shared with the other end,
// which could make writing to it wait.
type socketBell struct {
	conn *net.UnixConn
	raw  syscall.RawConn
}

func newSocketBell(conn *net.UnixConn) (*socketBell, error) {
	raw, err := conn.SyscallConn()
	return &socketBell{conn, raw}, err
}

func (b *socketBell) ring()  { _ = b.raw.Control(sendByte) }
func (b *socketBell) close() { _ = b.conn.Close() }
