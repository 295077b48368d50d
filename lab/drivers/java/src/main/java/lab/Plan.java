package lab;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.util.List;

/** What a driver is told to do, as the lab's protocol has it. Null where the client's default is wanted. */
final class Plan {
    String type;
    int version;
    String operation;
    String sink;
    String source;
    Integer concurrency;
    Long part_size;
    Boolean checksums;
    String listing;
    String endpoint;
    String region;
    String bucket;
    String ca_file;
    String folder;
    List<Item> work;

    /** One object, one range of an object (the end is exclusive), or one listing. */
    static final class Item {
        String key;
        long size;
        long[] range;
        String prefix;
        long keys;

        Item() {}

        Item(String key, long size) {
            this.key = key;
            this.size = size;
        }

        long bytes() {
            return range == null ? size : range[1] - range[0];
        }

        /** As a request's header says it, or null for the whole object. */
        String httpRange() {
            return range == null ? null : "bytes=" + range[0] + "-" + (range[1] - 1);
        }
    }

    /** A plan that is no plan, or of a version that this driver does not know. */
    static final class Bad extends Exception {
        Bad(String why) {
            super(why);
        }
    }

    /** A plan that this client can't do. */
    static final class Skip extends Exception {
        Skip(String why) {
            super(why);
        }
    }

    static Plan parse(String line) throws Bad {
        Plan plan;
        try {
            plan = new Gson().fromJson(line, Plan.class);
        } catch (JsonParseException error) {
            throw new Bad("the plan's line can't be read: " + error.getMessage());
        }
        if (plan == null || !"plan".equals(plan.type)) {
            throw new Bad("the first line's type is not \"plan\"");
        }
        if (plan.version != Protocol.VERSION) {
            throw new Bad("the plan's version is " + plan.version + ", this driver speaks " + Protocol.VERSION);
        }
        plan.check();
        return plan;
    }

    private void check() throws Bad {
        if (endpoint == null || bucket == null || operation == null) {
            throw new Bad("the plan names no endpoint, no bucket or no operation");
        }
        if (!endpoint.matches("https?://[^/]+/?")) {
            throw new Bad("the plan's endpoint is no http://HOST:PORT or https://HOST:PORT");
        }
        if (work == null || work.isEmpty()) {
            throw new Bad("the plan has no work");
        }
        if (concurrency != null && concurrency < 1 || part_size != null && part_size < 1) {
            throw new Bad("the plan's concurrency or part size is below 1");
        }
        if (folder == null && (is("get") && "file".equals(sink) || is("put") && "file".equals(source))) {
            throw new Bad("the plan has files and names no folder");
        }
        for (Item item : work) {
            long[] range = item.range;
            boolean outside = range != null
                    && (range.length != 2 || range[0] < 0 || range[0] >= range[1] || range[1] > item.size);
            if (item.size < 0 || outside || item.key == null && !is("list")) {
                throw new Bad("an item of the plan has no key, a negative size or a range outside it");
            }
        }
    }

    boolean is(String wanted) {
        return wanted.equals(operation);
    }

    long largest() {
        return work.stream().mapToLong(Item::bytes).max().orElse(0);
    }
}
