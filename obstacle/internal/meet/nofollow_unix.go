//go:build unix

package meet

import "syscall"

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
