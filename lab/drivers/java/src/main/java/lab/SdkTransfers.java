package lab;

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.async.SdkPublisher;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.transfer.s3.S3TransferManager;
import software.amazon.awssdk.transfer.s3.model.DownloadFileRequest;
import software.amazon.awssdk.transfer.s3.model.DownloadRequest;
import software.amazon.awssdk.transfer.s3.model.UploadFileRequest;
import software.amazon.awssdk.transfer.s3.model.UploadRequest;

/** The AWS SDK's client on the CRT, by itself or beneath its transfer manager. */
final class SdkTransfers implements Transfers {
    private static final int DEFAULT_ITEMS = 100;
    private static final long DEFAULT_PART = 8L << 20;

    private final Plan plan;
    private final S3AsyncClient client;
    private final S3TransferManager manager;
    private final int lanes;
    private final Map<String, Object> effective = new HashMap<>();

    /** With {@code items} the transfer manager, which has at most so many in flight; without (0) the client. */
    SdkTransfers(Plan plan, int items) {
        this.plan = plan;
        boolean checked = plan.checksums == null || plan.checksums;
        long part = plan.part_size == null ? DEFAULT_PART : plan.part_size;
        var builder = S3AsyncClient.crtBuilder()
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create(
                        System.getenv("AWS_ACCESS_KEY_ID"), System.getenv("AWS_SECRET_ACCESS_KEY"))))
                .region(Region.of(plan.region))
                .endpointOverride(URI.create(plan.endpoint))
                .forcePathStyle(true)
                .minimumPartSizeInBytes(part)
                .thresholdInBytes(part)
                .requestChecksumCalculation(
                        checked ? RequestChecksumCalculation.WHEN_SUPPORTED : RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(
                        checked ? ResponseChecksumValidation.WHEN_SUPPORTED : ResponseChecksumValidation.WHEN_REQUIRED);
        if (plan.concurrency != null) {
            // It takes a connection for each 0.4 Gbit/s that it aims at, and what it is told only makes them fewer.
            builder.targetThroughputInGbps(Math.max(10.0, 0.5 * plan.concurrency));
            builder.maxConcurrency(plan.concurrency);
        }
        client = builder.build();
        manager = items > 0 ? S3TransferManager.builder().s3Client(client).build() : null;
        int asked = plan.concurrency == null ? (items > 0 ? items : DEFAULT_ITEMS) : plan.concurrency;
        lanes = items > 0 ? Math.min(items, asked) : asked;
        // Where the plan wants more than the transfer manager's items, its connections are still as many.
        effective.put("concurrency", plan.concurrency == null || lanes < asked ? null : (Object) lanes);
        effective.put("items", lanes);
        effective.put("connections", plan.concurrency);
        effective.put("part_size", part);
        effective.put("checksums", checked);
    }

    @Override
    public int lanes() {
        return lanes;
    }

    @Override
    public Map<String, Object> effective() {
        return effective;
    }

    @Override
    public CompletableFuture<Long> get(Plan.Item item, Sink into) {
        GetObjectRequest request =
                GetObjectRequest.builder().bucket(plan.bucket).key(item.key).range(item.httpRange()).build();
        if (into.file() != null) {
            CompletableFuture<GetObjectResponse> written = manager == null
                    ? client.getObject(request, into.file())
                    : manager.downloadFile(DownloadFileRequest.builder()
                            .getObjectRequest(request).destination(into.file()).build())
                            .completionFuture().thenApply(done -> done.response());
            return written.thenApply(response -> into.file().toFile().length());
        }
        var receiver = new Receiver(into);
        if (manager == null) {
            return client.getObject(request, receiver);
        }
        return manager.download(DownloadRequest.builder().getObjectRequest(request).responseTransformer(receiver).build())
                .completionFuture().thenApply(done -> done.result());
    }

    @Override
    public CompletableFuture<?> put(Plan.Item item, ByteBuffer body, Path file) {
        PutObjectRequest request = PutObjectRequest.builder().bucket(plan.bucket).key(item.key).build();
        if (manager != null && file != null) {
            return manager.uploadFile(UploadFileRequest.builder().putObjectRequest(request).source(file).build())
                    .completionFuture();
        }
        AsyncRequestBody from =
                file == null ? AsyncRequestBody.fromRemainingByteBufferUnsafe(body) : AsyncRequestBody.fromFile(file);
        if (manager == null) {
            return client.putObject(request, from);
        }
        return manager.upload(UploadRequest.builder().putObjectRequest(request).requestBody(from).build())
                .completionFuture();
    }

    @Override
    public CompletableFuture<List<Plan.Item>> list(String prefix) {
        List<Plan.Item> found = new ArrayList<>();
        return client.listObjectsV2Paginator(request -> request.bucket(plan.bucket).prefix(prefix))
                .subscribe(page -> page.contents()
                        .forEach(object -> found.add(new Plan.Item(object.key(), object.size()))))
                .thenApply(nothing -> found);
    }

    /** Hands what comes to the sink and keeps nothing. */
    private static final class Receiver implements AsyncResponseTransformer<GetObjectResponse, Long> {
        private final Sink sink;
        private CompletableFuture<Long> whole;

        Receiver(Sink sink) {
            this.sink = sink;
        }

        @Override
        public CompletableFuture<Long> prepare() {
            whole = new CompletableFuture<>();
            sink.restart();
            return whole;
        }

        @Override
        public void onResponse(GetObjectResponse response) {}

        @Override
        public void onStream(SdkPublisher<ByteBuffer> publisher) {
            publisher.subscribe(new Subscriber<>() {
                @Override
                public void onSubscribe(Subscription subscription) {
                    subscription.request(Long.MAX_VALUE);
                }

                @Override
                public void onNext(ByteBuffer bytes) {
                    sink.take(bytes);
                }

                @Override
                public void onError(Throwable error) {
                    whole.completeExceptionally(error);
                }

                @Override
                public void onComplete() {
                    whole.complete(sink.received());
                }
            });
        }

        @Override
        public void exceptionOccurred(Throwable error) {
            whole.completeExceptionally(error);
        }
    }
}
