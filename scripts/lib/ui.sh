# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What the user sees: phases with progress and time, one clear sentence when something is
# missing, and nothing left running after Ctrl-C.

# The process group of the phase that runs now, empty between phases.
JOB=

# die SENTENCE...: ends the program with one sentence on standard error.
die() {
    printf '\n%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# stop_job: ends everything that the current phase started. Contained commands die with the
# first process of their PID namespace, whatever they have started.
stop_job() {
    [[ $JOB ]] || return 0
    kill -TERM -- "-$JOB" 2>/dev/null || true
    local tries
    for tries in {1..80}; do
        kill -0 -- "-$JOB" 2>/dev/null || break
        ((tries == 20)) && kill -KILL -- "-$JOB" 2>/dev/null
        sleep 0.1
    done
    JOB=
}

trap 'stop_job; printf "\n%s: stopped, a new run resumes here\n" "${0##*/}" >&2; exit 130' INT TERM HUP
trap 'stop_job' EXIT

clock() {
    printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# follow TITLE LOG COMMAND...: runs the command with its output in LOG, and shows how far it is.
# A command that knows why it failed says so in a line that starts with "WHY: ".
follow() {
    local title=$1 log=$2 start=$SECONDS status=0 last said=0
    shift 2
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    JOB=$!
    set +m
    while kill -0 "$JOB" 2>/dev/null; do
        sleep 0.5
        if [[ -t 1 ]]; then
            last=$(tail -n 1 "$log" | tr -cd '[:print:]')
            printf '\r\033[K  %-42s %6s  %.60s' "$title" "$(clock $((SECONDS - start)))" "$last"
        elif ((SECONDS - start >= said + 30)); then
            said=$((SECONDS - start))
            printf '  %-42s %6s  ...\n' "$title" "$(clock $said)"
        fi
    done
    wait "$JOB" || status=$?
    stop_job
    [[ -t 1 ]] && printf '\r\033[K'
    if ((status)); then
        printf '  %-42s %6s  failed, the end of its log:\n' "$title" "$(clock $((SECONDS - start)))"
        tail -n 25 "$log" | sed '/^WHY: /d; s/^/    /'
        die "$(sed -n 's/^WHY: //p' "$log" | tail -n 1 | grep . || echo "\"$title\" failed, the whole log is $log")"
    fi
    printf '  %-42s %6s\n' "$title" "$(clock $((SECONDS - start)))"
}

# foreground COMMAND...: runs a command that reports for itself, and returns its status.
foreground() {
    local status=0
    set -m
    "$@" </dev/null &
    JOB=$!
    set +m
    wait "$JOB" || status=$?
    stop_job
    return "$status"
}

# stage KEY TITLE INPUTS COMMAND...: a phase whose result stays in the cache. It runs when its
# inputs (any text that decides the result) are not those of the last complete run.
stage() {
    local key=$1 title=$2 want
    want=$(printf '%s' "$3" | sha256sum)
    want=${want%% *}
    shift 3
    mkdir -p "$CACHE/stamps" "$CACHE/logs"
    if [[ -f $CACHE/stamps/$key && $(<"$CACHE/stamps/$key") == "$want" ]]; then
        printf '  %-42s  ready\n' "$title"
        return
    fi
    rm -f "$CACHE/stamps/$key"
    follow "$title" "$CACHE/logs/$key.log" "$@"
    printf '%s\n' "$want" >"$CACHE/stamps/$key.part"
    mv "$CACHE/stamps/$key.part" "$CACHE/stamps/$key"
}

# help_asked ARGUMENT...: prints the comment at the head of the program if --help is among them.
help_asked() {
    [[ " $* " == *" --help "* || " $* " == *" -h "* ]] || return 1
    sed -n '4,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
}
