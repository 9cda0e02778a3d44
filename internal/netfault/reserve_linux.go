// A port that is kept while connections to it are refused.

package netfault

import (
	"net"
	"syscall"
)

// reserve binds a port on which nobody listens, so that no other program gets it,
// and returns what gives it up. It is no error if that does not work: then the port
// may be lost, as it may be on other systems.
func reserve(addr string) (release func()) {
	release = func() {}
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return release
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return release
	}
	// For the bind the address may be in use by connections that have ended. After
	// it no other socket may share it, as all listeners of Go would.
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())})
	}
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return release
	}
	return func() { _ = syscall.Close(fd) }
}
