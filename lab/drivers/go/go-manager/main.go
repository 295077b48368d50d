// The AWS SDK for Go's download manager, writing to nowhere. Checksum validation is off.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"wirespeed.invalid/lab/drivers/go/lab"
)

type nowhere struct{}

func (nowhere) WriteAt(bytes []byte, _ int64) (int, error) { return len(bytes), nil }

func main() {
	lab.Main(func(work lab.Workload) (func() (int64, error), error) {
		client := s3.New(s3.Options{
			BaseEndpoint:               aws.String(work.Endpoint),
			Region:                     work.Region,
			Credentials:                credentials.NewStaticCredentialsProvider(work.AccessKey, work.SecretKey, ""),
			UsePathStyle:               true,
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
			ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
			DisableLogOutputChecksumValidationSkipped: true,
		})
		downloader := manager.NewDownloader(client, func(options *manager.Downloader) {
			options.PartSize = work.Part
			options.Concurrency = work.Connections
		})
		object := s3.GetObjectInput{Bucket: &work.Bucket, Key: &work.Key}
		return func() (int64, error) { return downloader.Download(context.Background(), nowhere{}, &object) }, nil
	})
}
