// Package awssdk makes the AWS SDK's client for a plan, as both of its transfer managers use it.
package awssdk

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"wirespeed.invalid/lab/drivers/go/protocol"
)

// Module is the client beneath the managers.
const Module = "github.com/aws/aws-sdk-go-v2/service/s3"

// New is the SDK's client with a connection kept for each request in flight. Nothing is read from the
// SDK's configuration files. Bodies are sent unsigned, over HTTP as the SDK does by itself over HTTPS.
func New(plan protocol.Plan, connections int) (*s3.Client, error) {
	roots, err := plan.Roots()
	if err != nil {
		return nil, err
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(http *http.Transport) {
		http.MaxIdleConns, http.MaxIdleConnsPerHost = connections, connections
		if roots != nil {
			http.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		}
	})
	key, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	options := s3.Options{
		BaseEndpoint: aws.String(plan.Endpoint),
		Region:       plan.Region,
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider(key, secret, "")),
		UsePathStyle: plan.PathStyle,
		HTTPClient:   transport,
		APIOptions:   []func(*middleware.Stack) error{v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware},
		DisableLogOutputChecksumValidationSkipped: true,
	}
	options.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	options.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if !protocol.Or(plan.Checksums, true) {
		options.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		options.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	return s3.New(options), nil
}

// List pages through a prefix, one request after the other.
func List(client *s3.Client, bucket, prefix string, found func(key string, size int64)) error {
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			return err
		}
		for _, object := range page.Contents {
			found(*object.Key, aws.ToInt64(object.Size))
		}
	}
	return nil
}

// Object is the request for an item, or for the range of it that the plan wants.
func Object(plan protocol.Plan, item protocol.Item) *s3.GetObjectInput {
	input := s3.GetObjectInput{Bucket: &plan.Bucket, Key: &item.Key}
	if item.Range != nil {
		input.Range = aws.String(item.HTTPRange())
	}
	return &input
}
