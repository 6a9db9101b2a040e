package yamldoc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadFile reads a regular file of at most limit bytes. It refuses devices and pipes, which may not end. Its
// errors do not contain the name of the file.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file")
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("its %d bytes are more than the %d allowed", info.Size(), limit)
	}
	data, err := os.ReadFile(path)
	return data, reason(err)
}

// reason removes the path, which the message already contains.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
