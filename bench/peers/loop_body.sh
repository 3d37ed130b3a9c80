#!/bin/sh
# The 900-second vigil of the second story: ask /health every 10 s for a body that holds "ok" or "healthy"; each 150 s print
# the log's last two lines; after 900 s say FAILED. A body that is empty, as SGLang's and vLLM's are, is never "ok".
# Usage: loop_body.sh URL LOG [INTERVAL_S] [LIMIT_S]
url=$1
log=$2
interval_s=${3:-10}
limit_s=${4:-900}

waited_s=0
while [ "$waited_s" -lt "$limit_s" ]; do
    if curl -s "$url/health" | grep -qi 'ok\|healthy'; then
        echo "READY after ${waited_s}s"
        exit 0
    fi
    sleep "$interval_s"
    waited_s=$((waited_s + interval_s))
    if [ $((waited_s % 150)) -eq 0 ]; then
        echo "[${waited_s}s] $(tail -n 2 "$log")"
    fi
done
echo "FAILED after ${limit_s}s"
exit 1
