package cli

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Exit codes of the program; scripts rely on them.
const (
	ExitSolved  = 0
	ExitFailed  = 1 // at run time
	ExitUsage   = 2 // bad usage or input
	ExitStopped = 3 // before the tolerance; the best iterate was written
)

// exitError is an error with an exit code. Its text is empty if everything has been printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns an error of bad usage or input.
func usage(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// badInput marks an error as bad input; nil stays nil.
func badInput(err error) error { return withCode(ExitUsage, err) }

// failed marks an error as a failure at run time; nil stays nil.
func failed(err error) error { return withCode(ExitFailed, err) }

// withCode sets the exit code of an error that has none.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	if _, has := errors.AsType[*exitError](err); has {
		return err
	}
	return &exitError{code, err}
}

// exitCode returns the exit code of an error. Errors without one come from the parsing of flags and are bad usage.
func exitCode(err error) int {
	if err == nil {
		return ExitSolved
	}
	if _, is := errors.AsType[*iterate.PanicError](err); is {
		return ExitFailed
	}
	if e, is := errors.AsType[*exitError](err); is {
		return e.code
	}
	return ExitUsage
}
