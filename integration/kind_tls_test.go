// Nodes over TLS, with certificates made here, and over a unix socket.

package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// An authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key := issue(t, template, template, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.key = key
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate, which is its own issuer's if signer is nil.
func issue(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// issue makes a certificate for a server on 127.0.0.1, or for a client.
func (a *authority) issue(t *testing.T, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	der, key := issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// writePEM writes a certificate and its key for a server to read.
func writePEM(t *testing.T, c tls.Certificate) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	block := pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}
	if err := os.WriteFile(cert, pem.EncodeToMemory(&block), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.PrivateKey == nil {
		return cert, ""
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	block = pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if err := os.WriteFile(key, pem.EncodeToMemory(&block), 0o600); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// startTLS starts three servers that speak TLS to clients of the authority, which
// need a certificate of their own if that is said. config is what clients use.
func startTLS(t *testing.T, a *authority, clientCerts string, config *tls.Config) *farm {
	t.Helper()
	cert, key := writePEM(t, a.issue(t, x509.ExtKeyUsageServerAuth))
	ca, _ := writePEM(t, tls.Certificate{Certificate: [][]byte{a.cert.Raw}})
	f := &farm{T: t}
	for range 3 {
		port := strconv.Itoa(freePort(t))
		s := redisproc.Start(t, redisproc.Persist(redisproc.AOFAlways), redisproc.Args("--tls-port", port,
			"--tls-auth-clients", clientCerts, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca))
		f.servers = append(f.servers, s)
		f.sites = append(f.sites, site{
			dial: func() redis.UniversalClient {
				return dialTo(t, "127.0.0.1:"+port, func(o *redis.Options) { o.TLSConfig = config })
			},
			eye: dialTo(t, s.Addr(), nil),
		})
	}
	return f
}

// freePort returns a port that was free a moment ago, beyond those that redisproc
// takes and below those that the system gives to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 24000 + mathrand.IntN(8000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func startUnix(t *testing.T) *farm {
	t.Helper()
	f := &farm{T: t}
	for range 3 {
		socket := filepath.Join(t.TempDir(), "s")
		s := redisproc.Start(t, redisproc.Persist(redisproc.AOFAlways), redisproc.Args("--unixsocket", socket))
		f.servers = append(f.servers, s)
		f.sites = append(f.sites, site{
			dial: func() redis.UniversalClient {
				return dialTo(t, socket, func(o *redis.Options) { o.Network = "unix" })
			},
			eye: dialTo(t, s.Addr(), nil),
		})
	}
	return f
}

// TestKindTLSRefused: whom the servers, or who the servers, do not trust is told so by
// each node and at once; it is no timeout, and nobody's lock.
func TestKindTLSRefused(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		config *tls.Config
		words  string
	}{
		"no client certificate": {&tls.Config{RootCAs: a.pool}, "certificate required"},
		"another's client certificate": {
			&tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{stranger.issue(t, x509.ExtKeyUsageClientAuth)}}, "tls:",
		},
		"unknown authority of the servers": {&tls.Config{RootCAs: stranger.pool}, "unknown authority"},
		"no TLS":                           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startTLS(t, a, "yes", c.config)
			start := time.Now()
			_, err := mutexOf(t, f.open(redlock.WithTTL(40*time.Second), redlock.WithNodeTimeout(10*time.Second)), "m").TryLock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("it took %v", d)
			}
			told := nodeErrors(t, err)
			if len(told) < 2 {
				t.Errorf("%d nodes are named: %v", len(told), err)
			}
			for _, e := range told {
				if !strings.Contains(e.Error(), c.words) || e.Node == "" {
					t.Errorf("%v says nothing of %q", e, c.words)
				}
			}
			f.noKeys()
		})
	}
}
