import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own client in a loop, and nothing else: what a message costs before anybody looks at it.
 *
 * <p>Arguments: name server, file of messages (one per line), how many. Then, for each line of
 * standard input, `out TOPIC COUNT` sends so many of them in batches to the queues in turn, and
 * `in TOPIC COUNT` reads as many; each answers with the seconds that it took.
 */
public class RocketMQLoop {
  private static final int BATCH = 256;

  public static void main(String[] args) throws Exception {
    String server = args[0];
    int count = Integer.parseInt(args[2]);
    List<byte[]> bodies = new ArrayList<>(count);
    try (BufferedReader lines = Files.newBufferedReader(Path.of(args[1]))) {
      for (String line; bodies.size() < count && (line = lines.readLine()) != null; ) {
        bodies.add(line.getBytes(StandardCharsets.UTF_8));
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
        double seconds =
            words[0].equals("out")
                ? out(producer, words[1], bodies.subList(0, wanted))
                : in(server, words[1], wanted);
        System.out.println(seconds);
      } catch (Exception error) {
        System.out.println("failed " + error.toString().replace('\n', ' '));
      }
    }
    producer.shutdown();
    System.exit(0);
  }

  private static double out(DefaultMQProducer producer, String topic, List<byte[]> bodies)
      throws Exception {
    List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
    long start = System.nanoTime();
    int turn = 0;
    for (int at = 0; at < bodies.size(); at += BATCH) {
      List<Message> batch = new ArrayList<>(BATCH);
      for (byte[] body : bodies.subList(at, Math.min(at + BATCH, bodies.size()))) {
        batch.add(new Message(topic, "orders", body));
      }
      producer.send(batch, queues.get(turn++ % queues.size()));
    }
    return (System.nanoTime() - start) / 1e9;
  }

  private static double in(String server, String topic, int count) throws Exception {
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
