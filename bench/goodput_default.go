//go:build !linux

package main

import (
	"context"
	"errors"
)

func goodputs(context.Context, *bench) error {
	return errors.New("the network lab is Linux's")
}

func flowEnd() {}
