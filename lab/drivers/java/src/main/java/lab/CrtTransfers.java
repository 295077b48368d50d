package lab;

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.crt.auth.signing.AwsSigningConfig;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;
import software.amazon.awssdk.crt.io.ClientBootstrap;
import software.amazon.awssdk.crt.io.EventLoopGroup;
import software.amazon.awssdk.crt.io.HostResolver;
import software.amazon.awssdk.crt.io.TlsContext;
import software.amazon.awssdk.crt.io.TlsContextOptions;
import software.amazon.awssdk.crt.s3.ChecksumAlgorithm;
import software.amazon.awssdk.crt.s3.ChecksumConfig;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3Client;
import software.amazon.awssdk.crt.s3.S3ClientOptions;
import software.amazon.awssdk.crt.s3.S3DirectBufferPoolOptions;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions.MetaRequestType;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions.ResponseFileOption;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/** The CRT's S3 client without the SDK: bodies copied to the heap, or lent as direct buffers. */
final class CrtTransfers implements Transfers {
    private static final int DEFAULT_ITEMS = 100;
    private static final long DEFAULT_PART = 8L << 20;

    private final Plan plan;
    private final boolean direct;
    private final URI endpoint;
    private final S3Client client;
    private final int lanes;
    private final boolean checked;
    private final Map<String, Object> effective = new HashMap<>();

    CrtTransfers(Plan plan, boolean direct) {
        this.plan = plan;
        this.direct = direct;
        endpoint = URI.create(plan.endpoint);
        lanes = plan.concurrency == null ? DEFAULT_ITEMS : plan.concurrency;
        checked = plan.checksums != null && plan.checksums;
        long part = plan.part_size == null ? DEFAULT_PART : plan.part_size;
        var credentials = new StaticCredentialsProvider.StaticCredentialsProviderBuilder()
                .withAccessKeyId(System.getenv("AWS_ACCESS_KEY_ID").getBytes(StandardCharsets.UTF_8))
                .withSecretAccessKey(System.getenv("AWS_SECRET_ACCESS_KEY").getBytes(StandardCharsets.UTF_8))
                .build();
        var loops = new EventLoopGroup(0);
        var options = new S3ClientOptions()
                .withRegion(plan.region)
                .withClientBootstrap(new ClientBootstrap(loops, new HostResolver(loops)))
                .withSigningConfig(AwsSigningConfig.getDefaultS3SigningConfig(plan.region, credentials))
                .withPartSize(part)
                .withMultipartUploadThreshold(part);
        if (plan.concurrency != null) {
            // It takes a connection for each 0.4 Gbit/s that it aims at, and what it is told only makes them fewer.
            options.withThroughputTargetGbps(Math.max(10.0, 0.5 * plan.concurrency));
            options.withMaxConnections(plan.concurrency);
        }
        if (plan.ca_file != null) {
            var trust = TlsContextOptions.createDefaultClient();
            trust.overrideDefaultTrustStoreFromPath(null, plan.ca_file);
            options.withTlsContext(new TlsContext(trust));
        }
        if (direct) {
            options.withDirectBufferPoolOptions(S3DirectBufferPoolOptions.auto());
        }
        client = new S3Client(options);
        effective.put("concurrency", plan.concurrency);
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
        HttpHeader host = new HttpHeader("Host", endpoint.getAuthority());
        HttpHeader[] headers = item.range == null
                ? new HttpHeader[] {host}
                : new HttpHeader[] {host, new HttpHeader("Range", item.httpRange())};
        var options = new S3MetaRequestOptions()
                .withMetaRequestType(MetaRequestType.GET_OBJECT)
                .withChecksumConfig(new ChecksumConfig().withValidateChecksum(checked))
                .withHttpRequest(new HttpRequest("GET", path(item.key), headers, null));
        if (into.file() != null) {
            options.withResponseFilePath(into.file()).withResponseFileOption(ResponseFileOption.CREATE_OR_REPLACE);
        }
        CompletableFuture<Void> finished = send(options, direct ? new Lent(into) : new Copied(into));
        return finished.thenApply(
                nothing -> into.file() == null ? into.received() : into.file().toFile().length());
    }

    @Override
    public CompletableFuture<?> put(Plan.Item item, ByteBuffer body, Path file) {
        HttpHeader[] headers = {
            new HttpHeader("Host", endpoint.getAuthority()),
            new HttpHeader("Content-Length", Long.toString(item.size)),
        };
        var options = new S3MetaRequestOptions()
                .withMetaRequestType(MetaRequestType.PUT_OBJECT)
                .withHttpRequest(new HttpRequest("PUT", path(item.key), headers, body == null ? null : stream(body)));
        if (file != null) {
            options.withRequestFilePath(file);
        }
        if (checked) {
            options.withChecksumConfig(new ChecksumConfig()
                    .withChecksumAlgorithm(ChecksumAlgorithm.CRC32)
                    .withChecksumLocation(ChecksumConfig.ChecksumLocation.TRAILER));
        }
        return send(options, new Copied(new Sink(null, null, false)));
    }

    private CompletableFuture<Void> send(S3MetaRequestOptions options, Copied handler) {
        S3MetaRequest request = client.makeMetaRequest(options.withEndpoint(endpoint).withResponseHandler(handler));
        handler.finished.whenComplete((nothing, error) -> request.close());
        return handler.finished;
    }

    private String path(String key) {
        StringBuilder path = new StringBuilder("/").append(plan.bucket).append('/');
        for (byte letter : key.getBytes(StandardCharsets.UTF_8)) {
            if (letter > 0 && (Character.isLetterOrDigit(letter) || "-._~/".indexOf(letter) >= 0)) {
                path.append((char) letter);
            } else {
                path.append(String.format("%%%02X", letter & 0xFF));
            }
        }
        return path.toString();
    }

    private static HttpRequestBodyStream stream(ByteBuffer body) {
        int begin = body.position();
        return new HttpRequestBodyStream() {
            @Override
            public boolean sendRequestBody(ByteBuffer into) {
                int count = Math.min(into.remaining(), body.remaining());
                into.put(body.slice(body.position(), count));
                body.position(body.position() + count);
                return !body.hasRemaining();
            }

            @Override
            public boolean resetPosition() {
                body.position(begin);
                return true;
            }

            @Override
            public long getLength() {
                return body.limit() - begin;
            }
        };
    }

    /** Bodies as an array on the heap, copied for each call. */
    private static class Copied implements S3MetaRequestResponseHandler {
        final CompletableFuture<Void> finished = new CompletableFuture<>();
        final Sink sink;

        Copied(Sink sink) {
            this.sink = sink;
        }

        @Override
        public int onResponseBody(ByteBuffer bytes, long from, long to) {
            sink.take(bytes);
            return 0;
        }

        @Override
        public void onFinished(S3FinishedResponseContext end) {
            if (end.getErrorCode() == CRT.AWS_CRT_SUCCESS) {
                finished.complete(null);
                return;
            }
            byte[] said = end.getErrorPayload();
            finished.completeExceptionally(new RuntimeException(CRT.awsErrorName(end.getErrorCode()) + ", status "
                    + end.getResponseStatus() + (said == null ? "" : ": " + new String(said, StandardCharsets.UTF_8))));
        }
    }

    /** Bodies as direct buffers, lent until they are closed: nothing is copied. */
    private static final class Lent extends Copied implements S3BorrowedBufferDelivery {
        Lent(Sink sink) {
            super(sink);
        }

        @Override
        public int onResponseBodyBorrowed(S3BorrowedBuffer lent, long from, long to) {
            try (lent) {
                sink.take(lent.asByteBuffer());
            }
            return 0;
        }
    }
}
