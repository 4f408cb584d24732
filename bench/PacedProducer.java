import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends messages to a topic at an even pace, and prints how many in how many seconds.
 *
 * <p>Arguments: bootstrap servers, topic, file of messages (a line each), partitions, messages per
 * second, seconds. In a message, a byte 1 stands for its number and the time it is sent in
 * microseconds (NUMBER@TIME), a byte 2 for the number of its commit.
 */
public class PacedProducer {
  public static void main(String[] args) throws Exception {
    String topic = args[1];
    List<byte[]> messages = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(args[2]))) {
      messages.add(line.getBytes(StandardCharsets.UTF_8));
    }
    int partitions = Integer.parseInt(args[3]);
    int pace = Integer.parseInt(args[4]);
    long total = (long) pace * Integer.parseInt(args[5]);
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("linger.ms", "5");
    settings.put("batch.size", "262144");
    long firstCommit = System.currentTimeMillis() << 18;
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      producer.partitionsFor(topic);
      long start = System.nanoTime();
      long sent = 0;
      while (sent < total) {
        long due = Math.min(total, (long) ((System.nanoTime() - start) / 1e9 * pace) + 1);
        long now = System.currentTimeMillis() * 1000;
        for (; sent < due; sent++) {
          byte[] value = stamped(messages.get((int) (sent % messages.size())), sent, now, firstCommit);
          producer.send(new ProducerRecord<>(topic, (int) (sent / 3 % partitions), null, value));
        }
        Thread.sleep(5);
      }
      producer.flush();
      System.out.println(sent + " " + (System.nanoTime() - start) / 1e9);
    }
  }

  static byte[] stamped(byte[] message, long number, long now, long firstCommit) {
    byte[] note = (number + "@" + now).getBytes(StandardCharsets.US_ASCII);
    byte[] commit = Long.toString(firstCommit + number).getBytes(StandardCharsets.US_ASCII);
    var out = new ByteArrayOutputStream(message.length + 64);
    int start = 0;
    for (int i = 0; i < message.length; i++) {
      if (message[i] == 1 || message[i] == 2) {
        out.write(message, start, i - start);
        byte[] value = message[i] == 1 ? note : commit;
        out.write(value, 0, value.length);
        start = i + 1;
      }
    }
    out.write(message, start, message.length - start);
    return out.toByteArray();
  }
}
