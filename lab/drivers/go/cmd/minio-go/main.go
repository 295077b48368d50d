// minio-go, the client inside warp. A GET is one request, as it has no splitting of its own; where the
// plan names a part size, a larger object is got as one ranged request for each part.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"wirespeed.invalid/lab/drivers/go/protocol"
)

const (
	module = "github.com/minio/minio-go/v7"
	// The client's own for the parts of an upload, which it does not export.
	defaultThreads, defaultPart, leastPart = 4, 16 << 20, 5 << 20
	bufferBytes                            = 1 << 20
)

func main() {
	protocol.Main(protocol.Description{
		Name:       "minio-go",
		Client:     "minio-go",
		Version:    protocol.Built(module),
		Components: protocol.Components(),
		Operations: []string{"get", "put", "list"},
		Sinks:      []string{"discard", "memory", "stream", "file"},
		Sources:    []string{"memory", "file"},
		Settings:   []string{"concurrency", "part_size", "checksums", "listing"},
		TLS:        true,
	}, open)
}

type driver struct {
	plan  protocol.Plan
	core  *minio.Core
	lanes []int
	part  int64
	// Of a download it checks whole objects in one request, where the store tells their checksums.
	checksums bool
	buffers   sync.Pool
}

func open(plan protocol.Plan) (*protocol.Transfers, error) {
	driver := &driver{plan: plan}
	driver.buffers.New = func() any { return make([]byte, bufferBytes) }
	checksums := protocol.Or(plan.Checksums, false)
	driver.checksums = checksums
	lanes, total := plan.Lanes(defaultThreads)
	driver.lanes = lanes
	effective := map[string]any{"concurrency": total, "part_size": nil, "checksums": checksums}
	var err error
	if plan.Operation == "put" {
		if driver.part, err = plan.UploadPart(defaultPart, leastPart); err != nil {
			return nil, err
		}
		effective["part_size"] = driver.part
	} else if plan.Operation == "get" && plan.PartSize != nil && plan.Sink != "stream" {
		driver.part = *plan.PartSize
		effective["part_size"] = driver.part
	}
	if driver.core, err = connect(plan, total, checksums); err != nil {
		return nil, err
	}
	return &protocol.Transfers{
		Lanes: len(lanes), Effective: effective, Get: driver.get, Put: driver.put, List: driver.list,
	}, nil
}

func connect(plan protocol.Plan, connections int, checksums bool) (*minio.Core, error) {
	endpoint, err := url.Parse(plan.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	if roots, err := plan.Roots(); err != nil {
		return nil, err
	} else if roots != nil && secure {
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	lookup := minio.BucketLookupDNS
	if plan.PathStyle {
		lookup = minio.BucketLookupPath
	}
	return minio.NewCore(endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "",
		),
		Secure:          secure,
		Region:          plan.Region,
		BucketLookup:    lookup,
		Transport:       transport,
		TrailingHeaders: checksums,
	})
}

func (driver *driver) get(lane int, item protocol.Item, into *protocol.Sink) (int64, error) {
	begin, end := int64(0), item.Size
	if item.Range != nil {
		begin, end = item.Range[0], item.Range[1]
	}
	if driver.part == 0 || end-begin <= driver.part {
		return driver.whole(item, into)
	}
	var next, received atomic.Int64
	var workers sync.WaitGroup
	failures := make([]error, driver.lanes[lane])
	for n := range failures {
		workers.Go(func() {
			for failures[n] == nil {
				from := begin + next.Add(driver.part) - driver.part
				if from >= end {
					return
				}
				count, err := driver.request(item, from, min(from+driver.part, end), from-begin, into)
				received.Add(count)
				failures[n] = err
			}
		})
	}
	workers.Wait()
	return received.Load(), errors.Join(failures...)
}

func (driver *driver) whole(item protocol.Item, into *protocol.Sink) (int64, error) {
	if item.Range != nil {
		return driver.request(item, item.Range[0], item.Range[1], 0, into)
	}
	return driver.receive(item, minio.GetObjectOptions{}, 0, item.Size, into)
}

// One request for [from, end) of the object, which goes to `at` of the item and after.
func (driver *driver) request(item protocol.Item, from, end, at int64, into *protocol.Sink) (int64, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(from, end-1); err != nil {
		return 0, err
	}
	return driver.receive(item, options, at, end-from, into)
}

func (driver *driver) receive(
	item protocol.Item, options minio.GetObjectOptions, at, size int64, into *protocol.Sink,
) (int64, error) {
	options.Checksum = driver.checksums
	body, _, _, err := driver.core.GetObject(context.Background(), driver.plan.Bucket, item.Key, options)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	into.Came()
	if memory := into.Memory(); memory != nil && at+size <= int64(len(memory)) {
		count, err := io.ReadFull(body, memory[at:at+size])
		return int64(count), err
	}
	buffer := driver.buffers.Get().([]byte)
	defer driver.buffers.Put(buffer)
	if driver.plan.Sink == "stream" {
		return into.Drain(body, buffer)
	}
	for done := int64(0); ; {
		count, err := body.Read(buffer)
		if count > 0 {
			if _, failed := into.WriteAt(buffer[:count], at+done); failed != nil {
				return done, failed
			}
			done += int64(count)
		}
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}

func (driver *driver) put(lane int, item protocol.Item, body protocol.Body) error {
	options := minio.PutObjectOptions{
		PartSize:   uint64(driver.part),
		NumThreads: uint(driver.lanes[lane]),
		// Sent unsigned, over HTTP as it does by itself over HTTPS.
		DisableContentSha256: true,
	}
	_, err := driver.core.Client.PutObject(
		context.Background(), driver.plan.Bucket, item.Key, body, item.Size, options,
	)
	return err
}

func (driver *driver) list(prefix string, found func(string, int64)) error {
	options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true}
	for object := range driver.core.Client.ListObjectsIter(context.Background(), driver.plan.Bucket, options) {
		if object.Err != nil {
			return object.Err
		}
		found(object.Key, object.Size)
	}
	return nil
}
