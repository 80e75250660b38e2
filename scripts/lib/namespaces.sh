# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Commands in namespaces of their own: mounts, processes and (when asked for) network devices
# die with the command, the machine keeps none of them.

# contain [--net] COMMAND...: runs a command of this machine so. It does not outlive the shell that
# called it: unshare holds back SIGTERM, but dies with its parent, and its child with it.
contain() {
    local net=()
    if [[ $1 == --net ]]; then
        net=(--net)
        shift
    fi
    setpriv --pdeathsig KILL -- unshare --mount --propagation private --pid --fork --kill-child=KILL --mount-proc \
        "${net[@]}" -- "$@"
}

# inside [--net] COMMAND...: runs a command in the Debian root, with the repository at /src and
# the cache folder at /cache.
inside() {
    local net=()
    if [[ $1 == --net ]]; then
        net=(--net)
        shift
    fi
    contain "${net[@]}" bash "$SCRIPTS/lib/into-root" "$CACHE" "$SCRIPTS/.." "$@"
}
