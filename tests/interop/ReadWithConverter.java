import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * Reads messages with Kafka's JSON converter, writes them again, and says what it refused or changed.
 * A line of input is "key" or "value", whether decimals are numbers, and the message in base64.
 */
public class ReadWithConverter {
    private static final ObjectMapper JSON =
        new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        for (int number = 0; (line = lines.readLine()) != null; number++) {
            String[] parts = line.split(" ");
            byte[] message = Base64.getDecoder().decode(parts[2]);
            try (JsonConverter converter = new JsonConverter()) {
                String decimals = Boolean.parseBoolean(parts[1]) ? "NUMERIC" : "BASE64";
                converter.configure(
                    Map.of("schemas.enable", "true", "decimal.format", decimals),
                    parts[0].equals("key"));
                SchemaAndValue read = converter.toConnectData("topic", message);
                byte[] again = converter.fromConnectData("topic", read.schema(), read.value());
                JsonNode sent = JSON.readTree(message);
                String path = difference(
                    sent.get("schema"), sent.get("payload"), JSON.readTree(again).get("payload"));
                if (path != null) {
                    System.out.println(number + " changed" + path);
                }
            } catch (Exception error) {
                String why = error + (error.getCause() == null ? "" : " " + error.getCause());
                System.out.println(number + " refused: " + why.replace("\n", " "));
            }
        }
    }

    /** Where two payloads differ in what the schema declares; null where they do not. */
    private static String difference(JsonNode schema, JsonNode sent, JsonNode read) {
        if (sent == null || sent.isNull()) {
            return read == null || read.isNull() || schema.has("default") ? null : ": not null";
        }
        if (schema.get("type").asText().equals("struct")) {
            for (JsonNode field : schema.get("fields")) {
                String name = field.get("field").asText();
                JsonNode other = read.isNull() ? null : read.get(name);
                String path = difference(field, sent.get(name), other);
                if (path != null) {
                    return "." + name + path;
                }
            }
            return null;
        }
        if (sent.isNumber() && read != null && read.isNumber()) {
            boolean same = schema.get("type").asText().startsWith("int")
                ? sent.bigIntegerValue().equals(read.bigIntegerValue())
                : sent.decimalValue().compareTo(read.decimalValue()) == 0
                    || sent.doubleValue() == read.doubleValue()
                    || sent.floatValue() == read.floatValue();
            return same ? null : ": another number";
        }
        if (schema.get("type").asText().equals("array") && read != null && read.isArray()) {
            for (int i = 0; i < sent.size(); i++) {
                String path = difference(schema.get("items"), sent.get(i), read.get(i));
                if (path != null) {
                    return "[" + i + "]" + path;
                }
            }
            return sent.size() == read.size() ? null : ": another length";
        }
        return sent.equals(read) ? null : ": another value";
    }
}
