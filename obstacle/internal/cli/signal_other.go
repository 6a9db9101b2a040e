//go:build !unix

package cli

import "os"

func survivable() []os.Signal { return nil }
