#!/usr/bin/env bash
# Three nodes of one company on PostgreSQL, without containers: a question to each in one
# conversation, which one of them answers; the node that runs the company is killed; a
# question to each that is left. All is in a folder that is removed at the end.
#
#     pip install 'callboard[postgresql]'; apt-get install postgresql curl
#     bash three_nodes.sh
#
# The nodes take three addresses of this machine, as three machines would have: 127.0.0.11
# to 127.0.0.13 with the ports 8080 and 8082. PORT=9000 takes 9000 and 9002 instead.
# Ends with 1 if a question is not answered.
set -euo pipefail
port=${PORT:-8080}

PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin) # where Debian keeps its programs
for program in callboard curl initdb pg_ctl psql; do
  command -v "$program" > /dev/null || {
    echo "three_nodes.sh: $program is missing; the lines at its top say how to get it." >&2
    exit 1
  }
done

folder=$(mktemp -d)
cd "$folder"
declare -A pids=()
user=()
end() {
  code=$?
  kill "${pids[@]}" 2> /dev/null || true
  wait
  "${user[@]}" pg_ctl stop -D "$folder/db/data" -m immediate > /dev/null 2>&1 || true
  if ((code)); then tail -n 20 "$folder"/*.log >&2 2> /dev/null || true; fi
  cd /
  rm -rf "$folder"
}
trap end EXIT

# PostgreSQL refuses to be root's. It opens no port: only its user and root reach it.
mkdir db
if ((EUID == 0)); then
  user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
  chmod 711 .
  chown nobody:nogroup db
fi
cd db
"${user[@]}" initdb -N -U callboard -A trust -E UTF8 --locale=C -D "$folder/db/data" > initdb.log
"${user[@]}" pg_ctl start -w -D "$folder/db/data" -l "$folder/db/data/log" \
  -o "-c listen_addresses= -c unix_socket_permissions=0700 -k $folder/db" > /dev/null
cd ..
psql -q -h "$folder/db" -U callboard -d postgres -c 'CREATE DATABASE callboard'

# One settings file for all: what `callboard init` writes, with the embedded model. What
# makes it a company of several nodes is set here, and could stand in it as well.
callboard init --yes --model embedded > /dev/null
export CALLBOARD_CONFIG=$folder/callboard.toml
export CALLBOARD_DATABASE="host=$folder/db user=callboard dbname=callboard"
export CALLBOARD_STORE__KIND=postgresql
export CALLBOARD_STORE__DSN='{ env = "CALLBOARD_DATABASE" }'
# Needed, because a request to one node is answered by another: without a key, each
# takes only what is sent to its own address.
CALLBOARD_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
export CALLBOARD_KEY
export CALLBOARD_CONNECTORS__HTTP__API_KEY='{ env = "CALLBOARD_KEY" }'
export CALLBOARD_CONNECTORS__HTTP__PORT=$port
export CALLBOARD_ADMIN__PORT=$((port + 2))

declare -A address=([a]=127.0.0.11 [b]=127.0.0.12 [c]=127.0.0.13)
for node in a b c; do
  CALLBOARD_NODES__NAME=$node CALLBOARD_NODES__ADDRESS=${address[$node]} \
    CALLBOARD_CONNECTORS__HTTP__HOST=${address[$node]} \
    CALLBOARD_ADMIN__HOST=${address[$node]} \
    callboard serve > "$node.log" 2>&1 &
  pids[$node]=$!
done

# What a proxy asks: whether a node runs the company, or can pass connections on.
wait_ready() {
  for _ in {1..600}; do
    if curl -sf -o answer "http://${address[$1]}:$((port + 2))/readyz"; then
      return
    fi
    kill -0 "${pids[$1]}" 2> /dev/null || break
    sleep 0.1
  done
  echo "three_nodes.sh: node $1 is not ready." >&2
  exit 1
}

# A connection that is lost on the way is asked anew; its key makes that safe.
ask() { # NODE QUESTION
  curl -sS --fail-with-body --retry 5 --retry-all-errors -m 60 -o answer \
    "http://${address[$1]}:$port/v1/chat/completions" \
    -H "Authorization: Bearer $CALLBOARD_KEY" -H "Idempotency-Key: $1-$RANDOM$RANDOM" \
    -H 'Content-Type: application/json' -H 'X-Callboard-Conversation: lobby' -d \
    "{\"model\": \"anna\", \"messages\": [{\"role\": \"user\", \"content\": \"$2\"}]}"
  echo "$1: $2? $(sed -E 's/.*"content": ?"([^"]*)".*/\1/' answer)"
}

# Lists the nodes once one of them runs the company.
list() {
  for _ in {1..60}; do
    callboard nodes list > listed
    if grep -q 'runs the company' listed; then break; fi
    sleep 0.5
  done
  cat listed
}

for node in a b c; do wait_ready "$node"; done
for node in a b c; do ask "$node" 'what is 6 * 7'; done
# A node that is new is given parts of the work once it has been there for 12 seconds.
until ! grep -q 'stands by' <(callboard nodes list); do sleep 0.5; done
list
owner=$(awk '/runs the company/ {print $1}' listed)

echo "kill -9 of $owner"
kill -9 "${pids[$owner]}"
wait "${pids[$owner]}" 2> /dev/null || true
began=$SECONDS
unset "pids[$owner]"
for node in "${!pids[@]}"; do ask "$node" 'what is 2 ** 10'; done
echo "answered after $((SECONDS - began)) s"
list
