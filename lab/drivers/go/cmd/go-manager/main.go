// The AWS SDK for Go's feature/s3/manager: Downloader and Uploader; listings by the SDK's paginator.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"wirespeed.invalid/lab/drivers/go/awssdk"
	"wirespeed.invalid/lab/drivers/go/protocol"
)

const module = "github.com/aws/aws-sdk-go-v2/feature/s3/manager"

func main() {
	protocol.Main(protocol.Description{
		Name:       "go-manager",
		Client:     "aws-sdk-go-v2 feature/s3/manager",
		Version:    protocol.Built(module),
		Components: protocol.Components(awssdk.Module),
		Operations: []string{"get", "put", "list"},
		// It writes at offsets: there is no stream in order.
		Sinks:    []string{"discard", "memory", "file"},
		Sources:  []string{"memory", "file"},
		Settings: []string{"concurrency", "part_size", "checksums", "listing"},
		TLS:      true,
	}, open)
}

func open(plan protocol.Plan) (*protocol.Transfers, error) {
	lanes, total := plan.Lanes(manager.DefaultDownloadConcurrency)
	client, err := awssdk.New(plan, total)
	if err != nil {
		return nil, err
	}
	part := protocol.Or(plan.PartSize, manager.DefaultDownloadPartSize)
	if plan.Operation == "put" {
		if part, err = plan.UploadPart(manager.DefaultUploadPartSize, manager.MinUploadPartSize); err != nil {
			return nil, err
		}
	}
	// What has a range of its own is one request to it, whatever the part size.
	var parts any = part
	if plan.Operation == "get" && plan.Work[0].Range != nil {
		parts = nil
	}
	downloader := manager.NewDownloader(client, func(options *manager.Downloader) { options.PartSize = part })
	uploader := manager.NewUploader(client, func(options *manager.Uploader) {
		options.PartSize = max(part, manager.MinUploadPartSize)
	})
	return &protocol.Transfers{
		Lanes: len(lanes),
		Effective: map[string]any{
			"concurrency": total, "part_size": parts, "checksums": protocol.Or(plan.Checksums, true),
		},
		Get: func(lane int, item protocol.Item, into *protocol.Sink) (int64, error) {
			return downloader.Download(context.Background(), into, awssdk.Object(plan, item),
				func(options *manager.Downloader) { options.Concurrency = lanes[lane] })
		},
		Put: func(lane int, item protocol.Item, body protocol.Body) error {
			input := s3.PutObjectInput{Bucket: &plan.Bucket, Key: &item.Key, Body: body}
			_, err := uploader.Upload(context.Background(), &input,
				func(options *manager.Uploader) { options.Concurrency = lanes[lane] })
			return err
		},
		List: func(prefix string, found func(string, int64)) error {
			return awssdk.List(client, plan.Bucket, prefix, found)
		},
	}, nil
}
