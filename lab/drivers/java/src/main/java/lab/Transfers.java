package lab;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A client that is ready for a plan. */
interface Transfers {
    /** Items that are in flight at once, if there are as many. */
    int lanes();

    /** The configuration in effect; null where nobody can know it. */
    Map<String, Object> effective();

    /** Puts the item's bytes into the sink; ends with how many there were. */
    CompletableFuture<Long> get(Plan.Item item, Sink into);

    /** Stores the item: the bytes of {@code body}, or of {@code file} where that isn't null. */
    CompletableFuture<?> put(Plan.Item item, ByteBuffer body, Path file);

    /** All objects below a prefix, in order. */
    default CompletableFuture<List<Plan.Item>> list(String prefix) {
        return CompletableFuture.failedFuture(new UnsupportedOperationException("it lists nothing"));
    }
}
