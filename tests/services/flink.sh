# shellcheck shell=bash
# Apache Flink for `services`: flink (2.2.0) and flink-1 (1.20.3), each a session cluster of one JobManager and one TaskManager
# with RocksDB, and the SQL Gateway with the Kafka connector: three processes under one name, 500 MiB together. `up` starts those
# of the three that do not run, on the ports they had: a test kills one and calls `up` again. Logs: `services logs flink/gateway`.

FLINK_VERSION=2.2.0
FLINK_1_VERSION=1.20.3
FLINK_SLOTS=16
FLINK_ROLES=(jobmanager taskmanager gateway)
ALL=(flink flink-1 "${ALL[@]}")

flink_rest() { printf 'http://127.0.0.1:%s' "$(saved_port "$1")"; }
flink_gateway() { printf 'http://127.0.0.1:%s' "$(($(saved_port "$1") + 1))"; }

# The pid of the gateway when all three run.
flink_pid() { # NAME
  local role pid=''
  for role in "${FLINK_ROLES[@]}"; do pid=$(pid_of "$1/$role") || return 1; done
  printf '%s\n' "$pid"
}

# The TaskManager that runs now is the only one the JobManager knows, and it has brought its slots.
flink_cluster_answers() { # NAME
  local ids
  ids=$(curl -sf -m 3 "$(flink_rest "$1")/v1/taskmanagers" | grep -oE '"id":"[^"]*"') || return 1
  [ "$ids" = "\"id\":\"$(cat -- "$home/$1/taskmanager/id")\"" ] || return 1
  curl -sf -m 3 "$(flink_rest "$1")/v1/overview" | grep -q "\"slots-total\":$FLINK_SLOTS,"
}
flink_gateway_answers() { curl -sf -m 3 "$(flink_gateway "$1")/info"; }

flink_configuration() { # NAME PORT
  local dir=$home/$1 port=$2
  cat <<YAML
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((port + 2))
jobmanager.bind-host: 127.0.0.1
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $port
rest.bind-port: "$port"
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: $FLINK_SLOTS
taskmanager.cpu.cores: $FLINK_SLOTS.0
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.task.heap.size: 256m
taskmanager.memory.framework.off-heap.size: 96m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.managed.size: 128m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 128m
taskmanager.memory.jvm-overhead.max: 128m
cluster.registration.error-delay: 250
cluster.registration.refused-registration-delay: 250
heartbeat.interval: 2000
heartbeat.timeout: 20000
web.refresh-interval: 500
resourcemanager.standalone.start-up-time: 86400000
parallelism.default: 1
io.tmp.dirs: "$dir/tmp"
execution.checkpointing.dir: "file://$dir/checkpoints"
execution.checkpointing.savepoint-dir: "file://$dir/savepoints"
state.backend.rocksdb.memory.managed: false
state.backend.rocksdb.metrics.block-cache-capacity: true
state.backend.rocksdb.metrics.estimate-num-keys: true
sql-gateway.endpoint.rest.address: 127.0.0.1
sql-gateway.endpoint.rest.bind-address: 127.0.0.1
sql-gateway.endpoint.rest.port: $((port + 1))
sql-gateway.endpoint.rest.bind-port: "$((port + 1))"
YAML
}

flink_logging() {
  cat <<'PROPERTIES'
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %-40c{1} - %m%n
PROPERTIES
}

flink_start() { # NAME ROLE JAVA JARS HEAP CLASS ARGUMENT...
  local name=$1 role=$2 java=$3 jars=$4 heap=$5 package flags=()
  shift 5
  pid_of "$name/$role" >/dev/null && return 0
  # What Flink's own scripts open to it.
  for package in java.base/sun.net.util java.rmi/sun.rmi.registry jdk.compiler/com.sun.tools.javac.{api,file,parser,tree,util} java.security.jgss/sun.security.krb5; do
    flags+=("--add-exports=$package=ALL-UNNAMED")
  done
  for package in java.lang java.lang.reflect java.net java.io java.nio java.text java.time java.util java.util.concurrent \
    java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
    flags+=("--add-opens=java.base/$package=ALL-UNNAMED")
  done
  mkdir -p -- "$home/$name/$role"
  FLINK_CONF_DIR=$home/$name/conf FLINK_LIB_DIR=$jars spawn_java "$name/$role" "$java" "${flags[@]}" "-Xmx${heap}m" \
    -XX:MaxDirectMemorySize=256m -Djava.awt.headless=true "-Djava.io.tmpdir=$home/$name/tmp" \
    "-Dlog4j.configurationFile=$home/$name/conf/log4j.properties" -cp "$jars/*" "$@"
}

up_flink() { # NAME VERSION
  local name=$1 version=$2 dir=$home/$1 java jars port kafka connector=flink-sql-connector-kafka avro=$2 main=org.apache.flink.runtime
  case $version in
    1.20.*) kafka=3.4.0-1.20 connector=flink-connector-kafka avro=1.20.0 ;;
    *) kafka=5.0.0-2.2 ;;
  esac
  java=$(find_java 11 21) || die "Flink needs a Java of 11 to 21: install such a JDK, or set JAVA_HOME"
  command -v curl >/dev/null 2>&1 || die "curl is needed to ask Flink: install the package 'curl'"
  jars=$(fetch "flink-$version" flink.xml copy-dependencies "-Dflink.version=$version" "-Dkafka.artifact=$connector" \
    "-Dkafka.version=$kafka" "-Davro.version=$avro")
  mkdir -p -- "$dir/conf" "$dir/tmp" "$dir/checkpoints" "$dir/savepoints"
  [ -f "$dir/port" ] || free_ports 3 >"$dir/port"
  port=$(saved_port "$name")
  flink_configuration "$name" "$port" >"$dir/conf/config.yaml"
  flink_logging >"$dir/conf/log4j.properties"
  say "starting Flink $version on port $port, its SQL Gateway on port $((port + 1))"
  # A JobManager that died took its jobs along; its TaskManager would find out after the heartbeat timeout only.
  pid_of "$name/jobmanager" >/dev/null || end_process "$name/taskmanager"
  flink_start "$name" jobmanager "$java" "$jars" 384 "$main.entrypoint.StandaloneSessionClusterEntrypoint" --configDir "$dir/conf"
  if ! pid_of "$name/taskmanager" >/dev/null; then
    mkdir -p -- "$dir/taskmanager"
    printf 'taskmanager-%s-%s\n' "$(date +%s)" "$$" >"$dir/taskmanager/id"
    flink_start "$name" taskmanager "$java" "$jars" 384 "$main.taskexecutor.TaskManagerRunner" --configDir "$dir/conf" \
      -D "taskmanager.resource-id=$(cat -- "$dir/taskmanager/id")"
  fi
  flink_start "$name" gateway "$java" "$jars" 512 org.apache.flink.table.gateway.SqlGateway
  await_flink "$name" jobmanager flink_cluster_answers "$name"
  await_flink "$name" gateway flink_gateway_answers "$name"
}

await_flink() { # NAME ROLE COMMAND...
  local name=$1 role=$2 end=$((SECONDS + START_TIMEOUT))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! flink_pid "$name" >/dev/null || [ "$SECONDS" -ge "$end" ]; then
      flink_logs "$name" | cut -c1-300 >&2 || true
      stop "$name"
      die "$name: the $role did not become ready"
    fi
    sleep 0.2
  done
}

stop_flink() { # NAME
  local role
  for role in gateway taskmanager jobmanager; do end_process "$1/$role"; done
}

flink_logs() { # NAME
  local role
  for role in "${FLINK_ROLES[@]}"; do
    echo "--- $role"
    tail -n 30 -- "$home/$1/$role/log" 2>/dev/null || true
  done
}

flink_environment() { # NAME VARIABLE
  local role pid
  [ -f "$home/$1/port" ] || return 0
  pid_of "$1/jobmanager" >/dev/null || pid_of "$1/gateway" >/dev/null || return 0
  line "$2" "$(flink_rest "$1")"
  line "$2_GATEWAY" "$(flink_gateway "$1")"
  for role in "${FLINK_ROLES[@]}"; do
    if pid=$(pid_of "$1/$role"); then line "$2_$(printf '%s' "$role" | tr a-z A-Z)_PID" "$pid"; fi
  done
}
