//go:build !unix

package meet

const noFollow = 0
