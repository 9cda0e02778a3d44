// Clients of every kind as nodes: they work, keep their options, and live on.

package redlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A clientMaker starts a server and makes a client of it. The clients close with
// the test.
type clientMaker func(t *testing.T) redis.UniversalClient

var clientMakers = map[string]clientMaker{
	"RESP2": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return dial(t, redisproc.Start(t).Addr(), func(o *redis.Options) { o.Protocol = 2 })
	},
	"password": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		s := redisproc.Start(t, redisproc.Args("--requirepass", "secret"))
		return dial(t, s.Addr(), func(o *redis.Options) { o.Password = "secret" })
	},
	"database": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return dial(t, redisproc.Start(t).Addr(), func(o *redis.Options) { o.DB = 7 })
	},
	"no timeouts": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return dial(t, redisproc.Start(t).Addr(), func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 })
	},
	"short timeouts": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return dial(t, redisproc.Start(t).Addr(), func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = time.Second, time.Second })
	},
	"one connection": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return dial(t, redisproc.Start(t).Addr(), func(o *redis.Options) { o.PoolSize = 1 })
	},
	"unix":    startUnix,
	"TLS":     startTLS,
	"cluster": startCluster,
	"universal": func(t *testing.T) redis.UniversalClient {
		t.Helper()
		c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{redisproc.Start(t).Addr()}})
		t.Cleanup(func() { c.Close() })
		return c
	},
}

func startUnix(t *testing.T) redis.UniversalClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	redisproc.Start(t, redisproc.Args("--unixsocket", socket))
	return dial(t, socket, func(o *redis.Options) { o.Network = "unix" })
}

func startTLS(t *testing.T) redis.UniversalClient {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noErr(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	noErr(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	noErr(t, err)
	dir := t.TempDir()
	files := map[string][]byte{
		"cert": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		"key":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
	for name, content := range files {
		noErr(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	redisproc.Start(t, redisproc.Args("--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file",
		filepath.Join(dir, "cert"), "--tls-key-file", filepath.Join(dir, "key"), "--tls-ca-cert-file", filepath.Join(dir, "cert")))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(files["cert"])
	return dial(t, l.Addr().String(), func(o *redis.Options) { o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"} })
}

// startCluster starts a cluster of one server that owns all slots. It refuses
// scripts whose keys are not of one slot.
func startCluster(t *testing.T) redis.UniversalClient {
	t.Helper()
	s := redisproc.Start(t, redisproc.Args("--cluster-enabled", "yes"))
	ask(t, s, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	if !eventually(10*time.Second, func() bool { return strings.Contains(ask(t, s, "CLUSTER", "INFO"), "cluster_state:ok") }) {
		t.Fatal("the cluster is not up")
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRedisClients(t *testing.T) {
	t.Parallel()
	for kind, start := range clientMakers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			all, before := make([]redis.UniversalClient, 3), make([]any, 3)
			var starts sync.WaitGroup
			for i := range all {
				starts.Go(func() { all[i] = start(t) }) // a cluster takes 2 s for it
			}
			starts.Wait()
			for i, c := range all {
				before[i] = optionsOf(c)
			}
			c := openClient(t, redlock.Redis(all...))
			for i, name := range oddNames {
				m := mutexOf(t, c, name)
				l, err := m.TryLock(t.Context())
				noErr(t, err)
				noErr(t, l.Extend(t.Context()))
				_, err = m.TryLock(t.Context())
				is(t, err, redlock.ErrTaken)
				noErr(t, l.Unlock(t.Context()))
				if i >= 10 && testing.Short() {
					break
				}
			}
			held := mustLock(t, mutexOf(t, c, "held"))
			noErr(t, c.Close())
			is(t, held.Err(), redlock.ErrClosed)
			for i, c := range all {
				if n, err := c.Exists(t.Context(), "lock:held").Result(); n != 0 || err != nil {
					t.Errorf("after Close client %d sees %d locks, %v", i, n, err)
				}
				if now := optionsOf(c); !reflect.DeepEqual(now, before[i]) {
					t.Errorf("options of client %d were %+v and are %+v", i, before[i], now)
				}
			}
		})
	}
}

// optionsOf returns what can be compared of a client's options.
func optionsOf(c redis.UniversalClient) any {
	switch c := c.(type) {
	case *redis.Client:
		o := *c.Options()
		return []any{o.Addr, o.DB, o.Protocol, o.MaxRetries, o.ReadTimeout, o.WriteTimeout, o.DialTimeout, o.PoolSize, o.ContextTimeoutEnabled}
	case *redis.ClusterClient:
		o := *c.Options()
		return []any{o.Addrs, o.Protocol, o.MaxRetries, o.MaxRedirects, o.ReadTimeout, o.WriteTimeout, o.PoolSize, o.ContextTimeoutEnabled}
	}
	return fmt.Sprintf("%T", c)
}

// TestRedisClusterSilent: a Cluster client cannot be given shorter timeouts, so
// only the library's own time bounds it.
func TestRedisClusterSilent(t *testing.T) {
	t.Parallel()
	const nodeTimeout = 300 * time.Millisecond
	f := startProxied(t, 3)
	defer f.hangUp()
	nodes := f.nodes(nil)
	for i := range 2 {
		c := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{f.addr(i)},
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: f.addr(i)}}}}, nil
			},
		})
		t.Cleanup(func() { c.Close() })
		nodes[i] = redlock.NewRedisNode(fmt.Sprintf("cluster-%d", i), c)
	}
	c := openClient(t, nodes, redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	m := mutexOf(t, c, "m")
	f.proxies[0].Blackhole(true)
	cycle(t, m)
	f.free(1)
	f.proxies[1].Blackhole(true)
	var err error
	d := took(func() { _, err = m.TryLock(t.Context()) })
	is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
	if d > nodeTimeout+quick {
		t.Errorf("TryLock took %v, want %v", d, nodeTimeout)
	}
}

func TestRedisNames(t *testing.T) {
	plain := func(addr string) redis.UniversalClient { return dial(t, addr, nil) }
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { failover.Close() })
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"c:1", "c:2"}})
	t.Cleanup(func() { cluster.Close() })
	got := redlock.Redis(plain("a:1"), plain("b:1"), plain("a:1"), failover, cluster, dial(t, "/tmp/s", func(o *redis.Options) { o.Network = "unix" }))
	want := []string{"a:1#1", "b:1", "a:1#3", "FailoverClient#4", "c:1", "/tmp/s"}
	for i, n := range got {
		if n.Name() != want[i] {
			t.Errorf("node %d is %q, want %q", i, n.Name(), want[i])
		}
	}
	if _, err := redlock.New(got); err != nil {
		t.Error(err)
	}

	var none *redis.Client
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "a:1"}})
	t.Cleanup(func() { ring.Close() })
	one := plain("a:1")
	pipeliner, err := one.(*redis.Client).AutoPipeline()
	noErr(t, err)
	for name, nodes := range map[string][]redlock.Node{
		"nil":           redlock.Redis(nil),
		"typed nil":     redlock.Redis(none),
		"ring":          redlock.Redis(ring),
		"same client":   redlock.Redis(one, one),
		"pipeliner":     redlock.Redis(pipeliner),
		"same name":     {redlock.NewRedisNode("n", plain("a:1")), redlock.NewRedisNode("n", plain("b:1"))},
		"no name":       {redlock.NewRedisNode("", plain("a:1"))},
		"nil interface": {nil},
	} {
		if c, err := redlock.New(nodes); err == nil || c != nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
}

// TestRedisSilentServer: a call to a server that says nothing returns when its time is
// over, and not when the client's own is, which by default is seconds: it keeps a
// connection for as long.
func TestRedisSilentServer(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	r := dial(t, p.Addr(), nil)
	noErr(t, r.Ping(t.Context()).Err())
	p.Blackhole(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	d := took(func() {
		_, err := redlock.NewRedisNode("n", r).Acquire(ctx, &redlock.Claim{Lock: "x", Value: "v", TTL: time.Second})
		if err == nil {
			t.Error("it has an answer")
		}
	})
	if own := r.Options().ReadTimeout; d > own/2 {
		t.Errorf("it took %v, of the client's %v", d, own)
	}
}
