package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 is a bucket of a store that speaks S3.
type S3 struct {
	client minio.Core
	bucket string
	part   int64 // how large the parts of an object are that has more, in bytes. A Put holds two in memory at most
}

// partBytes allows for objects of 156 GiB, since there are 10,000 parts at most.
const partBytes = 16 << 20

// ErrUnusable is wrapped by errors of [OpenS3] that do not pass by themselves.
var ErrUnusable = errors.New("the object store cannot be used")

// OpenS3 opens a bucket that exists, by its address https://HOST/BUCKET. An address with http:// sends everything in the clear,
// and is for a store on the same machine. The credentials are in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// for temporary ones AWS_SESSION_TOKEN; AWS_REGION is the bucket's region, which is asked for if it is not set. It returns an
// error that wraps [ErrUnusable] if that has to be changed.
func OpenS3(ctx context.Context, address string) (S3, error) {
	u, err := url.Parse(address)
	bucket := ""
	if err == nil {
		bucket = strings.Trim(u.Path, "/")
	}
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || bucket == "" || strings.Contains(bucket, "/") {
		return S3{}, fmt.Errorf("%w: %q is not https://HOST/BUCKET", ErrUnusable, address)
	}
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" || os.Getenv("AWS_SECRET_ACCESS_KEY") == "" {
		return S3{}, fmt.Errorf("%w: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both in the environment", ErrUnusable)
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewEnvAWS(), Secure: u.Scheme == "https", Region: os.Getenv("AWS_REGION")})
	if err != nil {
		return S3{}, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	exists, err := client.BucketExists(ctx, bucket)
	switch {
	case minio.ToErrorResponse(err).StatusCode == http.StatusForbidden:
		err = fmt.Errorf("%w: %s refuses the credentials of AWS_ACCESS_KEY_ID for the bucket %s: %w", ErrUnusable, u.Host, bucket, err)
	case err == nil && !exists:
		err = fmt.Errorf("%w: %s has no bucket %s", ErrUnusable, u.Host, bucket)
	}
	return S3{*client, bucket, partBytes}, err
}

// Put stores an object: a small one with one request, a large one in parts.
func (s S3) Put(ctx context.Context, name string, r io.Reader) error {
	first, err := io.ReadAll(io.LimitReader(r, s.part))
	if err != nil {
		return err
	}
	// the size is known of a small one, and it can be read again: the client makes parts of it else, and tries nothing again
	var all io.Reader = bytes.NewReader(first)
	size := int64(len(first))
	if size == s.part {
		all, size = io.MultiReader(all, r), -1
	}
	_, err = s.client.Client.PutObject(ctx, s.bucket, name, all, size, minio.PutObjectOptions{PartSize: uint64(s.part)})
	return err
}

// Get opens an object.
func (s S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, _, err := s.client.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Delete removes an object.
func (s S3) Delete(ctx context.Context, name string) error {
	return s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{})
}

// List asks for the names by their prefix.
func (s S3) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if !yield(object.Key, object.Err) || object.Err != nil {
				return
			}
		}
	}
}
