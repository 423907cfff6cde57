// Stands in for the sink of a vendor: a setting of the type PASSWORD whose name does not tell, and errors that repeat its value.
package streamt.test;

import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

public class VaultSink extends SinkConnector {
    private static final String PIN = "vault.pin";
    private static final ConfigDef SETTINGS =
        new ConfigDef().define(PIN, ConfigDef.Type.PASSWORD, "", VaultSink::check, ConfigDef.Importance.HIGH, "opens the vault");

    private Map<String, String> settings;

    // A pin that begins with "false" is refused when it is judged.
    private static void check(String name, Object value) {
        String pin = value == null ? "" : ((Password) value).value();
        if (pin.startsWith("false")) {
            throw new ConfigException(name, pin, "the vault has no pin " + pin);
        }
    }

    @Override
    public ConfigDef config() {
        return SETTINGS;
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return VaultTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.singletonList(settings);
    }

    @Override
    public void stop() {
    }

    public static class VaultTask extends SinkTask {
        // A pin that begins with "worn" is refused by the vault itself.
        @Override
        public void start(Map<String, String> given) {
            String pin = given.getOrDefault(PIN, "");
            if (pin.startsWith("worn")) {
                throw new ConnectException("the vault does not open with the pin " + pin);
            }
        }

        @Override
        public void put(Collection<SinkRecord> records) {
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
