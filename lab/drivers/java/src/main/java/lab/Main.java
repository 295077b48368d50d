package lab;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import software.amazon.awssdk.core.util.VersionInfo;

/** {@code drivers.jar CLIENT describe|run}: the drivers of the clients in Java. */
public final class Main {
    private static final List<String> CLIENTS =
            List.of("java-crt", "java-tm-100", "java-tm-250", "java-bytes", "java-direct");
    private static final int EXIT_USAGE = 2;
    private static final int EXIT_BAD_PLAN = 65;
    private static final int EXIT_SKIP = 77;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2 || !CLIENTS.contains(arguments[0]) || !List.of("describe", "run").contains(arguments[1])) {
            System.err.println("usage: drivers.jar " + String.join("|", CLIENTS) + " describe|run");
            System.exit(EXIT_USAGE);
        }
        // Nothing else that prints may reach the protocol's stream.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        PrintStream lines = new PrintStream(new BufferedOutputStream(out, 1 << 20), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        String client = arguments[0];
        Map<String, Object> about = about(client);
        if (arguments[1].equals("describe")) {
            Protocol.print(lines, about);
            lines.flush();
            Runtime.getRuntime().halt(0);
        }
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int status = 0;
        try {
            String line = input.readLine();
            Plan plan = Plan.parse(line == null ? "" : line);
            within(plan, about);
            new Protocol(plan, open(client, plan), lines).serve(input);
        } catch (Plan.Skip skip) {
            Protocol.print(lines, Map.of("type", "skip", "reason", skip.getMessage()));
            lines.flush();
            status = EXIT_SKIP;
        } catch (Plan.Bad bad) {
            System.err.println(bad.getMessage());
            status = EXIT_BAD_PLAN;
        }
        // The CRT's threads have nothing to finish.
        Runtime.getRuntime().halt(status);
    }

    private static boolean sdk(String client) {
        return !client.equals("java-bytes") && !client.equals("java-direct");
    }

    private static Transfers open(String client, Plan plan) {
        return switch (client) {
            case "java-crt" -> new SdkTransfers(plan, 0);
            case "java-tm-100" -> new SdkTransfers(plan, 100);
            case "java-tm-250" -> new SdkTransfers(plan, 250);
            default -> new CrtTransfers(plan, client.equals("java-direct"));
        };
    }

    /** What the library's own jar, which is within this one, says of itself. */
    private static String crtVersion() throws IOException {
        try (var stream = Main.class.getResourceAsStream("/META-INF/maven/software.amazon.awssdk.crt/aws-crt/pom.properties")) {
            var said = new Properties();
            if (stream != null) {
                said.load(stream);
            }
            return said.getProperty("version", "unknown");
        }
    }

    private static Map<String, Object> about(String client) throws IOException {
        boolean sdk = sdk(client);
        String crt = crtVersion();
        Map<String, Object> about = new LinkedHashMap<>();
        about.put("type", "describe");
        about.put("protocol", Protocol.VERSION);
        about.put("name", client);
        about.put("client", client.equals("java-crt") ? "S3CrtAsyncClient" : sdk ? "S3TransferManager" : "aws-crt S3Client");
        about.put("version", sdk ? VersionInfo.SDK_VERSION : crt);
        about.put("language", "java");
        about.put("components", Map.of("aws-crt", crt, "java", System.getProperty("java.version")));
        about.put("operations", sdk ? List.of("get", "put", "list") : List.of("get", "put"));
        about.put("sinks", List.of("discard", "memory", "stream", "file"));
        about.put("sources", List.of("memory", "file"));
        about.put("settings", sdk
                ? List.of("concurrency", "part_size", "checksums", "listing")
                : List.of("concurrency", "part_size", "checksums"));
        // The SDK's client on the CRT has no way to name what it trusts.
        about.put("tls", !sdk);
        return about;
    }

    private static void within(Plan plan, Map<String, Object> about) throws Plan.Skip {
        if (!((List<?>) about.get("operations")).contains(plan.operation)) {
            throw new Plan.Skip("it has no operation " + plan.operation);
        }
        if (plan.is("get") && !((List<?>) about.get("sinks")).contains(plan.sink)) {
            throw new Plan.Skip("it has no sink " + plan.sink);
        }
        if (plan.is("put") && plan.source != null && !((List<?>) about.get("sources")).contains(plan.source)) {
            throw new Plan.Skip("it has no source " + plan.source);
        }
        if (plan.listing != null && !((List<?>) about.get("settings")).contains("listing")) {
            throw new Plan.Skip("it lists nothing");
        }
        if (plan.endpoint.startsWith("https") && !Boolean.TRUE.equals(about.get("tls"))) {
            throw new Plan.Skip("S3CrtAsyncClient has no setting for a certificate authority of one's own");
        }
        boolean held = plan.is("get") && "memory".equals(plan.sink) || plan.is("put") && !"file".equals(plan.source);
        if (held && plan.largest() > Integer.MAX_VALUE - 8) {
            throw new Plan.Skip("an array of Java holds less than 2 GiB");
        }
    }
}
