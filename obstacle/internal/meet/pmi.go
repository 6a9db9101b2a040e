package meet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// pmiTime bounds the conversation with the process manager.
const pmiTime = 10 * time.Second

// PMIJob asks the process manager of MPICH for the name of the job, over the descriptor in PMI_FD, in version 1 of the
// PMI wire protocol. No later call in the process can use the descriptor.
func PMIJob(fd int) (string, error) {
	f := os.NewFile(uintptr(fd), "PMI_FD")
	if f == nil {
		return "", fmt.Errorf("PMI_FD=%d is no descriptor", fd)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return "", fmt.Errorf("PMI_FD=%d is no connection to the process manager: %w", fd, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(pmiTime)); err != nil {
		return "", err
	}
	return pmiJob(c)
}

func pmiJob(c io.ReadWriter) (string, error) {
	in := bufio.NewReaderSize(io.LimitReader(c, maxBytes), 4096)
	ask := func(request, want, field string) (string, error) {
		if _, err := io.WriteString(c, request+"\n"); err != nil {
			return "", err
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		answer := map[string]string{}
		for _, word := range strings.Fields(line) {
			name, value, _ := strings.Cut(word, "=")
			answer[name] = value
		}
		if answer["cmd"] != want {
			return "", fmt.Errorf("it answered %q to %q", strings.TrimSpace(line), request)
		}
		return answer[field], nil
	}
	_, err := ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", "")
	var name string
	if err == nil {
		name, err = ask("cmd=get_my_kvsname", "my_kvsname", "kvsname")
	}
	if err == nil && name == "" {
		err = errors.New("it named no job")
	}
	if err == nil {
		_, err = ask("cmd=finalize", "finalize_ack", "") // else the manager takes the end of this process for a crash
	}
	if err != nil {
		return "", fmt.Errorf("the process manager (PMI_FD): %w", err)
	}
	return name, nil
}
