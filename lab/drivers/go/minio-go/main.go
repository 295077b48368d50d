// minio-go, the client inside warp: one GetObject for each range, the body copied to nowhere.
package main

import (
	"context"
	"io"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"wirespeed.invalid/lab/drivers/go/lab"
)

func main() {
	lab.Main(func(work lab.Workload) (func() (int64, error), error) {
		endpoint, err := url.Parse(work.Endpoint)
		if err != nil {
			return nil, err
		}
		core, err := minio.NewCore(endpoint.Host, &minio.Options{
			Creds:  credentials.NewStaticV4(work.AccessKey, work.SecretKey, ""),
			Secure: endpoint.Scheme == "https",
			Region: work.Region,
		})
		if err != nil {
			return nil, err
		}
		return func() (int64, error) { return fetch(core, work) }, nil
	})
}

func fetch(core *minio.Core, work lab.Workload) (int64, error) {
	var next, received atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range work.Connections {
		workers.Go(func() {
			for {
				start := next.Add(work.Part) - work.Part
				if start >= work.Size || failed.Load() != nil {
					return
				}
				count, err := one(core, work, start, min(start+work.Part, work.Size)-1)
				received.Add(count)
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return received.Load(), nil
}

func one(core *minio.Core, work lab.Workload, first, last int64) (int64, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(first, last); err != nil {
		return 0, err
	}
	body, _, _, err := core.GetObject(context.Background(), work.Bucket, work.Key, options)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(io.Discard, body)
}
