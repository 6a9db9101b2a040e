package cli

import (
	"errors"
	"fmt"
)

// Exit codes of the program; scripts rely on them.
const (
	ExitSolved  = 0
	ExitFailed  = 1 // at run time
	ExitUsage   = 2 // bad usage or input
	ExitStopped = 3 // before the tolerance; the best iterate was written
)

// exitError is an error with the code that the program ends with. Its text may be
// empty: everything has been said.
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

// usage makes an error of bad usage or input.
func usage(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// badInput marks err, if there is one, as bad input.
func badInput(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{ExitUsage, err}
}

// failed marks err, if there is one, as a failure at run time.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{ExitFailed, err}
}

// exitCode is the code for an error; errors without one come from the parsing of
// flags and are bad usage.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitSolved
	case errors.As(err, &e):
		return e.code
	}
	return ExitUsage
}
