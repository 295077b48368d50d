package lab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;

/** Takes the bytes of one item, in order, where the plan wants them. A file is written by the client itself. */
final class Sink {
    private final CRC32 sum;
    private final byte[] memory;
    private final Path file;
    private long first;
    private long received;

    /** {@code memory} is of the sink that keeps the whole item, {@code file} of the one that writes it, else null. */
    Sink(byte[] memory, Path file, boolean verify) {
        this.memory = memory;
        this.file = file;
        this.sum = verify && memory == null && file == null ? new CRC32() : null;
    }

    /** Where the client is to write the item, or null. */
    Path file() {
        return file;
    }

    /** Takes the next bytes of the item, and all of the buffer. The client never calls this twice at once. */
    void take(ByteBuffer bytes) {
        if (first == 0) {
            first = System.nanoTime();
        }
        int count = bytes.remaining();
        if (memory != null) {
            bytes.get(memory, (int) received, count);
        } else if (sum != null) {
            sum.update(bytes);
        }
        received += count;
    }

    /** A client that tries an item again begins it anew. */
    void restart() {
        received = 0;
        if (sum != null) {
            sum.reset();
        }
    }

    long received() {
        return received;
    }

    /** When the first bytes came, in nanoseconds, or 0. */
    long first() {
        return first;
    }

    /** The CRC-32 of the item, once it is whole. */
    long digest() throws IOException {
        if (sum != null) {
            return sum.getValue();
        }
        CRC32 whole = new CRC32();
        if (memory != null) {
            whole.update(memory, 0, (int) received);
            return whole.getValue();
        }
        try (var stream = Files.newInputStream(file)) {
            byte[] buffer = new byte[1 << 20];
            for (int count; (count = stream.read(buffer)) > 0; ) {
                whole.update(buffer, 0, count);
            }
        }
        return whole.getValue();
    }
}
