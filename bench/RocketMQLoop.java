import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own client in a loop, and nothing else: what a message costs before anybody looks at it.
 *
 * <p>Arguments: name server, file of messages (one per line), how many. Then, for each line of
 * standard input, `in TOPIC COUNT` reads so many messages, `load TOPIC COUNT` reads and keeps them
 * in place of those of the file, and `out TOPIC COUNT` sends as many of those kept in batches to
 * the queues in turn; each answers with the seconds that it took.
 */
public class RocketMQLoop {
  private static final int BATCH = 256;

  public static void main(String[] args) throws Exception {
    String server = args[0];
    int count = Integer.parseInt(args[2]);
    List<Kept> kept = new ArrayList<>(count);
    try (BufferedReader lines = Files.newBufferedReader(Path.of(args[1]))) {
      for (String line; kept.size() < count && (line = lines.readLine()) != null; ) {
        kept.add(new Kept(line.getBytes(StandardCharsets.UTF_8), "orders", null, Map.of()));
      }
    }
    DefaultMQProducer producer = new DefaultMQProducer("bench-out");
    producer.setNamesrvAddr(server);
    producer.start();
    System.out.println("ready");
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = asked.readLine()) != null; ) {
      String[] words = line.split(" ");
      try {
        int wanted = Integer.parseInt(words[2]);
        if (words[0].equals("load")) {
          kept.clear();
        }
        double seconds =
            words[0].equals("out")
                ? out(producer, words[1], kept.subList(0, wanted))
                : in(server, words[1], wanted, words[0].equals("load") ? kept : null);
        System.out.println(seconds);
      } catch (Exception error) {
        System.out.println("failed " + error.toString().replace('\n', ' '));
      }
    }
    producer.shutdown();
    System.exit(0);
  }

  /** What a message has that its sender gave it. */
  private record Kept(byte[] body, String tags, String keys, Map<String, String> properties) {
    static Kept of(MessageExt message) {
      Map<String, String> own = new HashMap<>(message.getProperties());
      own.keySet().removeAll(MessageConst.STRING_HASH_SET);
      return new Kept(message.getBody(), message.getTags(), message.getKeys(), own);
    }

    Message to(String topic) {
      Message message = new Message(topic, tags, keys, body);
      properties.forEach(message::putUserProperty);
      return message;
    }
  }

  private static double out(DefaultMQProducer producer, String topic, List<Kept> kept)
      throws Exception {
    List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
    long start = System.nanoTime();
    int turn = 0;
    for (int at = 0; at < kept.size(); at += BATCH) {
      List<Message> batch = new ArrayList<>(BATCH);
      for (Kept each : kept.subList(at, Math.min(at + BATCH, kept.size()))) {
        batch.add(each.to(topic));
      }
      producer.send(batch, queues.get(turn++ % queues.size()));
    }
    return (System.nanoTime() - start) / 1e9;
  }

  private static double in(String server, String topic, int count, List<Kept> kept)
      throws Exception {
    long start = System.nanoTime();
    DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("bench-in");
    consumer.setNamesrvAddr(server);
    consumer.setAutoCommit(false);
    consumer.setPullBatchSize(BATCH);
    consumer.start();
    try {
      Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
      consumer.assign(queues);
      for (MessageQueue queue : queues) {
        consumer.seekToBegin(queue);
      }
      long bytes = 0;
      for (int seen = 0; seen < count; ) {
        List<MessageExt> messages = consumer.poll(1_000);
        for (MessageExt message : messages) {
          bytes += message.getBody().length;
          if (kept != null) {
            kept.add(Kept.of(message));
          }
        }
        seen += messages.size();
        if (System.nanoTime() - start > 600e9) {
          throw new IllegalStateException(seen + " of " + count + " messages came in 10 minutes");
        }
      }
      if (bytes == 0) {
        throw new IllegalStateException("the messages are empty");
      }
      return (System.nanoTime() - start) / 1e9;
    } finally {
      consumer.shutdown();
    }
  }
}
