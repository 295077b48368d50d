// The AWS SDK for Go's feature/s3/transfermanager: DownloadObject, GetObject where a stream in order is
// wanted, and UploadObject. It lists nothing but whole folders to files.
package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"wirespeed.invalid/lab/drivers/go/awssdk"
	"wirespeed.invalid/lab/drivers/go/protocol"
)

const (
	module = "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	// The client's own, which it does not export.
	defaultConcurrency = 5
	defaultPart        = 8 << 20
	defaultThreshold   = 16 << 20
	leastUploadPart    = 5 << 20
)

func main() {
	protocol.Main(protocol.Description{
		Name:       "go-transfermanager",
		Client:     "aws-sdk-go-v2 feature/s3/transfermanager",
		Version:    protocol.Built(module),
		Components: protocol.Components(awssdk.Module),
		Operations: []string{"get", "put"},
		Sinks:      []string{"discard", "memory", "stream", "file"},
		Sources:    []string{"memory", "file"},
		Settings:   []string{"concurrency", "part_size", "checksums"},
		TLS:        true,
	}, open)
}

type driver struct {
	plan    protocol.Plan
	manager *transfermanager.Client
	part    int64
	lanes   []int
	buffers [][]byte
}

func open(plan protocol.Plan) (*protocol.Transfers, error) {
	lanes, total := plan.Lanes(defaultConcurrency)
	client, err := awssdk.New(plan, total)
	if err != nil {
		return nil, err
	}
	part, checksums := protocol.Or(plan.PartSize, defaultPart), protocol.Or(plan.Checksums, true)
	if plan.Operation == "put" {
		if part, err = plan.UploadPart(defaultPart, leastUploadPart); err != nil {
			return nil, err
		}
	}
	driver := &driver{plan: plan, part: part, lanes: lanes, buffers: make([][]byte, len(lanes))}
	threshold := int64(defaultThreshold)
	if plan.PartSize != nil {
		threshold = part + 1
	}
	driver.manager = transfermanager.New(client, func(options *transfermanager.Options) {
		options.PartSizeBytes = part
		options.MultipartUploadThreshold = threshold
		// Objects of the lab have one part: its other way of splitting would get each in one request.
		options.GetObjectType = types.GetObjectRanges
		options.DisableChecksumValidation = !checksums
		if !checksums {
			options.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
	})
	return &protocol.Transfers{
		Lanes: len(lanes),
		Effective: map[string]any{
			"concurrency": total, "part_size": part, "multipart_threshold": threshold, "checksums": checksums,
		},
		Get: driver.get,
		Put: driver.put,
	}, nil
}

func (driver *driver) get(lane int, item protocol.Item, into *protocol.Sink) (int64, error) {
	if driver.plan.Sink == "stream" {
		return driver.stream(lane, item, into)
	}
	input := transfermanager.DownloadObjectInput{Bucket: &driver.plan.Bucket, Key: &item.Key, WriterAt: into}
	if item.Range != nil {
		input.Range = aws.String(item.HTTPRange())
	}
	output, err := driver.manager.DownloadObject(context.Background(), &input, driver.requests(lane))
	if err != nil {
		return 0, err
	}
	return aws.ToInt64(output.ContentLength), nil
}

func (driver *driver) stream(lane int, item protocol.Item, into *protocol.Sink) (int64, error) {
	input := transfermanager.GetObjectInput{Bucket: &driver.plan.Bucket, Key: &item.Key}
	if item.Range != nil {
		input.Range = aws.String(item.HTTPRange())
	}
	output, err := driver.manager.GetObject(context.Background(), &input, driver.requests(lane))
	if err != nil {
		return 0, err
	}
	// Each Read begins its requests anew and spins until they have answered: one that takes all parts
	// that it has in flight costs a tenth of one that takes a MiB.
	if driver.buffers[lane] == nil {
		driver.buffers[lane] = make([]byte, driver.part*int64(driver.lanes[lane]))
	}
	received, err := into.Drain(output.Body, driver.buffers[lane])
	// The body of an empty object is the response's own.
	if body, closes := output.Body.(interface{ Close() error }); closes {
		err = errors.Join(err, body.Close())
	}
	return received, err
}

// The lane's share of the requests in flight, and room for the parts that they bring.
func (driver *driver) requests(lane int) func(*transfermanager.Options) {
	return func(options *transfermanager.Options) {
		options.Concurrency = driver.lanes[lane]
		options.GetObjectBufferSize = options.PartSizeBytes * int64(options.Concurrency)
	}
}

func (driver *driver) put(lane int, item protocol.Item, body protocol.Body) error {
	input := transfermanager.UploadObjectInput{Bucket: &driver.plan.Bucket, Key: &item.Key, Body: body}
	_, err := driver.manager.UploadObject(context.Background(), &input, driver.requests(lane))
	return err
}
