import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import java.util.Scanner;

/** mysql-binlog-connector-java in a bare loop: counts the rows of a binlog, and does nothing else. */
public class BinlogLoop {
    public static void main(String[] args) throws Exception {
        Scanner input = new Scanner(System.in);
        System.out.println("ready");
        while (input.hasNextLine()) {
            // host port user password file position rows
            String[] words = input.nextLine().split(" ");
            BinaryLogClient client =
                new BinaryLogClient(words[0], Integer.parseInt(words[1]), words[2], words[3]);
            client.setServerId(3_999_001);
            client.setBinlogFilename(words[4]);
            client.setBinlogPosition(Long.parseLong(words[5]));
            long wanted = Long.parseLong(words[6]);
            long[] count = {0};
            client.registerEventListener(event -> {
                EventData data = event.getData();
                if (data instanceof WriteRowsEventData) {
                    count[0] += ((WriteRowsEventData) data).getRows().size();
                } else if (data instanceof UpdateRowsEventData) {
                    count[0] += ((UpdateRowsEventData) data).getRows().size();
                } else if (data instanceof DeleteRowsEventData) {
                    count[0] += ((DeleteRowsEventData) data).getRows().size();
                }
                if (count[0] >= wanted) {
                    synchronized (count) {
                        count.notify();
                    }
                }
            });
            long began = System.nanoTime();
            client.connect(30_000);
            synchronized (count) {
                while (count[0] < wanted) {
                    count.wait(1_000);
                }
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            client.disconnect();
            System.out.println(seconds);
        }
    }
}
