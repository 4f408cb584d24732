import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Debezium's embedded engine: counts its change events, and does nothing else with them. */
public class DebeziumLoop {
    static Properties properties(String[] words, Path folder) {
        Properties made = new Properties();
        made.setProperty("name", "bench");
        made.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
        made.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        made.setProperty("offset.storage.file.filename", folder.resolve("offsets").toString());
        made.setProperty("offset.flush.interval.ms", "60000");
        made.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        made.setProperty("schema.history.internal.file.filename", folder.resolve("history").toString());
        made.setProperty("database.hostname", words[1]);
        made.setProperty("database.port", words[2]);
        made.setProperty("database.user", words[3]);
        made.setProperty("database.password", words[4]);
        made.setProperty("database.server.id", "3999101");
        made.setProperty("database.include.list", "bench");
        made.setProperty("topic.prefix", "bench");
        made.setProperty("include.schema.changes", "false");
        made.setProperty("snapshot.mode", "no_data");
        made.setProperty("key.converter.schemas.enable", "false");
        made.setProperty("value.converter.schemas.enable", "false");
        return made;
    }

    static double run(Properties properties, String topic, long wanted) throws Exception {
        AtomicLong count = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        long[] first = {0};
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(properties)
            .notifying((records, committer) -> {
                long now = System.nanoTime();
                for (ChangeEvent<String, String> record : records) {
                    if (record.value() != null && record.destination().equals(topic)) {
                        count.incrementAndGet();
                        first[0] = first[0] == 0 ? now : first[0];
                    }
                    committer.markProcessed(record);
                }
                committer.markBatchFinished();
                if (count.get() >= wanted) {
                    done.countDown();
                }
            })
            .build();
        ExecutorService executor = Executors.newSingleThreadExecutor();
        executor.execute(engine);
        done.await(600, TimeUnit.SECONDS);
        // From the first events on: what comes before is the start of the engine.
        double seconds = (System.nanoTime() - first[0]) / 1e9;
        engine.close();
        executor.shutdown();
        executor.awaitTermination(60, TimeUnit.SECONDS);
        if (count.get() < wanted) {
            throw new IllegalStateException("only " + count.get() + " events came");
        }
        return seconds;
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Scanner input = new Scanner(System.in);
        System.out.println("ready");
        while (input.hasNextLine()) {
            // begin|read host port user password rows
            String[] words = input.nextLine().split(" ");
            boolean begins = words[0].equals("begin");
            if (!begins) {
                for (String name : new String[] {"offsets", "history"}) {
                    Files.copy(folder.resolve(name + ".begin"), folder.resolve(name),
                               StandardCopyOption.REPLACE_EXISTING);
                }
            }
            // It keeps its place only when an event has come: there is a table for that.
            double seconds = run(properties(words, folder), begins ? "bench.bench.ping" : "bench.bench.t",
                                 begins ? 1 : Long.parseLong(words[5]));
            if (begins) {
                for (String name : new String[] {"offsets", "history"}) {
                    Files.copy(folder.resolve(name), folder.resolve(name + ".begin"),
                               StandardCopyOption.REPLACE_EXISTING);
                }
            }
            System.out.println(begins ? "begun" : Double.toString(seconds));
        }
    }
}
