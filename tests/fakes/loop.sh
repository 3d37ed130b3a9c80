#!/bin/sh
# A supervisor's shell loop: run a command again and again; our own pid never changes.
# Usage: loop.sh [--log FILE [--mode append|truncate|rotate]] [--pause SECONDS] [--times N] -- COMMAND...
set -u
log= mode=append pause=0 times=0
while [ $# -gt 0 ]; do
    case $1 in
        --log) log=$2; shift 2 ;;
        --mode) mode=$2; shift 2 ;;
        --pause) pause=$2; shift 2 ;;
        --times) times=$2; shift 2 ;;
        --) shift; break ;;
        *) echo "loop.sh: unknown: $1" >&2; exit 2 ;;
    esac
done
[ $# -gt 0 ] || { echo "loop.sh: no command" >&2; exit 2; }

n=0
while [ "$times" = 0 ] || [ "$n" -lt "$times" ]; do
    n=$((n + 1))
    if [ -z "$log" ]; then
        "$@"
    elif [ "$mode" = truncate ]; then
        "$@" >"$log" 2>&1
    else
        [ "$mode" = append ] || [ ! -e "$log" ] || mv "$log" "$log.1"
        "$@" >>"$log" 2>&1
    fi
    sleep "$pause"
done
