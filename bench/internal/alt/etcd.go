// etcd.

package alt

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd starts a cluster of three. If etcd is not installed, the error is
// exec.ErrNotFound.
func Etcd(ctx context.Context) (s Server, err error) {
	bin, err := exec.LookPath("etcd")
	if err != nil {
		return nil, err
	}
	g, err := newGroup("etcd")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	addrs, err := freeAddrs(2 * members)
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i := range members {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, addrs[members+i]))
	}
	for i := range members {
		client, member := "http://"+addrs[i], "http://"+addrs[members+i]
		err = g.run(bin, "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(g.dir, fmt.Sprint("m", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", member, "--initial-advertise-peer-urls", member,
			"--initial-cluster", strings.Join(cluster, ","), "--logger", "zap", "--log-level", "error")
		if err != nil {
			return nil, err
		}
	}
	g.endpoint = strings.Join(addrs[:members], ",")
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs[:members], Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return g, g.await(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, startTimeout/20)
		defer cancel()
		_, err := c.Get(ctx, "ready") // linearizable: there is a leader
		return err
	})
}
