package lab;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

/** The rounds of the lab's driver protocol: every item once, a sample for each, and the clock around them. */
final class Protocol {
    static final int VERSION = 1;
    private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    private final Plan plan;
    private final Transfers transfers;
    private final PrintStream out;
    private final byte[] body;
    private final Sample[] samples;
    private final ConcurrentLinkedDeque<byte[]> memory = new ConcurrentLinkedDeque<>();

    private static final class Sample {
        int worker;
        long start;
        long first;
        long end;
        long bytes;
        Long keys;
        String error;
        String digest;
    }

    Protocol(Plan plan, Transfers transfers, PrintStream out) {
        this.plan = plan;
        this.transfers = transfers;
        this.out = out;
        this.samples = new Sample[plan.work.size()];
        this.body = plan.is("put") && !"file".equals(plan.source) ? Body.of((int) plan.largest()) : null;
    }

    static void print(PrintStream out, Map<String, Object> line) {
        out.println(JSON.toJson(line));
    }

    /** Says that it is ready, then does a round for each go, until standard input ends. */
    void serve(BufferedReader input) throws IOException, Plan.Bad {
        print(out, Map.of("type", "ready"));
        out.flush();
        for (String line; (line = input.readLine()) != null; ) {
            JsonObject order;
            try {
                order = JsonParser.parseString(line).getAsJsonObject();
            } catch (JsonParseException | IllegalStateException error) {
                throw new Plan.Bad("a line that is no go: " + line.substring(0, Math.min(200, line.length())));
            }
            if (!order.has("type") || !order.get("type").getAsString().equals("go")) {
                throw new Plan.Bad("a line that is no go: " + line.substring(0, Math.min(200, line.length())));
            }
            round(order.get("round").getAsLong(), order.has("verify") && order.get("verify").getAsBoolean());
        }
    }

    private void round(long number, boolean verify) {
        long start = System.nanoTime();
        List<Plan.Item> work = plan.work;
        String failed = null;
        if (plan.listing != null) {
            try {
                work = transfers.list(plan.listing).join();
                if (work.size() != samples.length) {
                    failed = work.size() + " objects are listed, not " + samples.length;
                }
            } catch (CompletionException error) {
                failed = text(error);
            }
        }
        if (failed == null) {
            run(work, verify);
        } else {
            for (int n = 0; n < samples.length; n++) {
                samples[n] = new Sample();
                samples[n].start = samples[n].end = System.nanoTime();
                samples[n].error = failed;
            }
        }
        long end = System.nanoTime();
        print(out, Map.of("type", "stopped", "round", number));
        out.flush();
        write();
        Map<String, Object> done = new LinkedHashMap<>();
        done.put("type", "done");
        done.put("round", number);
        done.put("start_ns", start);
        done.put("end_ns", end);
        done.put("effective", transfers.effective());
        print(out, done);
        out.flush();
    }

    /** As many chains of items as there are lanes: the end of one item begins its lane's next. */
    private void run(List<Plan.Item> work, boolean verify) {
        AtomicInteger next = new AtomicInteger();
        int lanes = Math.min(transfers.lanes(), work.size());
        CompletableFuture<?>[] all = new CompletableFuture<?>[lanes];
        for (int lane = 0; lane < lanes; lane++) {
            CompletableFuture<Void> finished = new CompletableFuture<>();
            all[lane] = finished;
            lane(lane, work, next, verify, finished);
        }
        CompletableFuture.allOf(all).join();
    }

    private void lane(int lane, List<Plan.Item> work, AtomicInteger next, boolean verify, CompletableFuture<Void> end) {
        // A loop where items end at once, so that no stack grows with them.
        while (true) {
            int n = next.getAndIncrement();
            if (n >= work.size()) {
                end.complete(null);
                return;
            }
            CompletableFuture<Void> item = one(lane, n, work.get(n), verify);
            if (!item.isDone()) {
                item.thenRun(() -> lane(lane, work, next, verify, end));
                return;
            }
        }
    }

    private CompletableFuture<Void> one(int lane, int n, Plan.Item item, boolean verify) {
        Sample sample = new Sample();
        samples[n] = sample;
        sample.worker = lane;
        sample.start = System.nanoTime();
        CompletableFuture<?> done;
        try {
            done = switch (plan.operation) {
                case "get" -> get(sample, n, item, verify);
                case "put" -> put(sample, n, item, verify);
                default -> list(sample, item, verify);
            };
        } catch (RuntimeException error) {
            done = CompletableFuture.failedFuture(error);
        }
        return done.handle((nothing, error) -> {
            if (sample.end == 0) {
                sample.end = System.nanoTime();
            }
            if (error != null) {
                sample.error = text(error);
            }
            return null;
        });
    }

    private CompletableFuture<?> get(Sample sample, int n, Plan.Item item, boolean verify) {
        boolean whole = "memory".equals(plan.sink);
        byte[] kept = whole ? memory.poll() : null;
        // Memory is used again, by whichever item comes next.
        byte[] held = whole && kept == null ? new byte[(int) plan.largest()] : kept;
        Path file = "file".equals(plan.sink) ? Path.of(plan.folder, Integer.toString(n)) : null;
        Sink sink = new Sink(held, file, verify);
        return transfers.get(item, sink).handle((bytes, error) -> {
            sample.end = System.nanoTime();
            sample.first = sink.first();
            try {
                if (error != null) {
                    throw new CompletionException(error);
                }
                sample.bytes = bytes;
                if (bytes != item.bytes()) {
                    throw new IllegalStateException(bytes + " bytes came, not " + item.bytes());
                }
                if (verify) {
                    sample.digest = String.format("%08x", sink.digest());
                }
            } catch (IOException unread) {
                throw new CompletionException(unread);
            } finally {
                if (held != null) {
                    memory.push(held);
                }
            }
            return null;
        });
    }

    private CompletableFuture<?> put(Sample sample, int n, Plan.Item item, boolean verify) {
        Path file = "file".equals(plan.source) ? Path.of(plan.folder, Integer.toString(n)) : null;
        ByteBuffer bytes = file == null ? ByteBuffer.wrap(body, 0, (int) item.size) : null;
        return transfers.put(item, bytes, file).thenRun(() -> {
            sample.end = System.nanoTime();
            sample.bytes = item.size;
            if (verify) {
                try {
                    CRC32 sum = new CRC32();
                    sum.update(file == null ? ByteBuffer.wrap(body, 0, (int) item.size)
                            : ByteBuffer.wrap(Files.readAllBytes(file)));
                    sample.digest = String.format("%08x", sum.getValue());
                } catch (IOException unread) {
                    throw new CompletionException(unread);
                }
            }
        });
    }

    private CompletableFuture<?> list(Sample sample, Plan.Item item, boolean verify) {
        return transfers.list(item.prefix).thenAccept(found -> {
            sample.end = System.nanoTime();
            sample.keys = (long) found.size();
            if (verify) {
                CRC32 sum = new CRC32();
                String keys = found.stream().map(object -> object.key).collect(Collectors.joining("\n"));
                sum.update(keys.getBytes(StandardCharsets.UTF_8));
                sample.digest = String.format("%08x", sum.getValue());
            }
        });
    }

    private void write() {
        for (int n = 0; n < samples.length; n++) {
            Sample sample = samples[n];
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("type", "sample");
            line.put("n", n);
            line.put("worker", sample.worker);
            line.put("start_ns", sample.start);
            line.put("first_ns", sample.first == 0 ? null : sample.first);
            line.put("end_ns", sample.end);
            line.put("bytes", sample.bytes);
            line.put("error", sample.error);
            if (sample.keys != null) {
                line.put("keys", sample.keys);
            }
            if (sample.digest != null && sample.error == null) {
                line.put("digest", sample.digest);
            }
            print(out, line);
        }
    }

    private static String text(Throwable error) {
        Throwable cause = error;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause.toString();
    }
}
