package meet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var place = Place{Addresses: []string{"192.0.2.1:7000"}, Key: []byte("0123456789abcdef"), Host: "a", Pid: 7}

func dead(Place) bool   { return false }
func living(Place) bool { return true }

func TestMeet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "meet")
	remove, err := Publish(dir, "job-1", place, living)
	require.NoError(t, err)
	got, err := Find(t.Context(), dir, "job-1")
	require.NoError(t, err)
	assert.Equal(t, place, got)
	for _, name := range []string{dir, Name(dir, "job-1")} {
		i, err := os.Stat(name)
		require.NoError(t, err)
		assert.Zero(t, i.Mode().Perm()&0o077, name)
	}
	remove()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Find waits for a file that is written later.
func TestFindWaits(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	synctest.Test(t, func(t *testing.T) {
		found := make(chan Place)
		go func() {
			p, err := Find(t.Context(), dir, "j")
			assert.NoError(t, err)
			found <- p
		}()
		synctest.Wait()
		_, err := Publish(dir, "j", place, dead)
		require.NoError(t, err)
		assert.Equal(t, place, <-found)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Find(ctx, dir, "other")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "meet-other.json")
	})
}

func TestLeftOver(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	_, err := Publish(dir, "j", place, dead)
	require.NoError(t, err)
	_, err = Publish(dir, "j", place, living)
	require.ErrorIs(t, err, ErrInUse)
	assert.ErrorContains(t, err, "process 7 on a")
	next := place
	next.Pid = 8
	_, err = Publish(dir, "j", next, dead)
	require.NoError(t, err)
	got, err := Find(t.Context(), dir, "j")
	require.NoError(t, err)
	assert.Equal(t, next, got)
	_, err = Publish(dir, "k", Place{Refused: "no"}, dead)
	require.NoError(t, err)
	_, err = Publish(dir, "k", place, living) // nobody lives there
	require.NoError(t, err)
}

func TestOthersFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := Publish(dir, "j", place, dead)
	require.ErrorContains(t, err, "other users can write")
	require.NoError(t, os.WriteFile(Name(dir, "j"), []byte(`{"addresses":["x:1"],"key":"aaaa"}`), 0o600))
	_, err = Find(t.Context(), dir, "j")
	require.ErrorContains(t, err, "other users can write")
	require.NoError(t, os.Chmod(dir, 0o700))
	_, err = Find(t.Context(), dir, "j")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(Name(dir, "j"), 0o644))
	_, err = Find(t.Context(), dir, "j")
	require.ErrorContains(t, err, "only you can read")
	require.NoError(t, os.Symlink(Name(dir, "j"), Name(dir, "link")))
	_, err = Find(t.Context(), dir, "link")
	require.Error(t, err)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 12345, -1))
		require.ErrorContains(t, Check(dir), "another user")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, Check(file))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"addresses":["192.0.2.1:7000"],"key":"AAAA","host":"a","pid":7}`))
	f.Add([]byte(`{"refused":"why"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := decode("f", text)
		if err == nil && p.Refused == "" && (len(p.Addresses) == 0 || len(p.Key) == 0) {
			t.Fatal(p)
		}
		if err != nil && errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	})
}
