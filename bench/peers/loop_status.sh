#!/bin/sh
# The careful wait of the first story: ask /health for its status code every 10 s, at most 90 times; 200 means ready; each
# minute print the time and the log's last line. What it lacks is kept too: no limit on one request, no look at the process,
# and nothing said and exit code 0 when the tries are used up.
# Usage: loop_status.sh URL LOG [INTERVAL_S] [TRIES]. REACH="ssh -o ConnectTimeout=10 gpu7" asks on the server's own host.
url=$1
log=$2
interval_s=${3:-10}
tries=${4:-90}

n=1
while [ "$n" -le "$tries" ]; do
    # shellcheck disable=SC2086  # REACH is a command with its arguments
    code=$($REACH curl -s -o /dev/null -w '%{http_code}' "$url/health")
    if [ "$code" = 200 ]; then
        echo "ready after $n tries"
        break
    fi
    if [ $((n * interval_s % 60)) -eq 0 ]; then
        # shellcheck disable=SC2086
        echo "$(date +%T) $($REACH tail -n 1 "$log")"
    fi
    sleep "$interval_s"
    n=$((n + 1))
done
