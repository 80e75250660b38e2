# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What this machine must be, where Debian's packages come from, and the two Debian trees:
# the root (toolchain, QEMU) and the guest.

SUITE=trixie


ROOT_PACKAGES=(
    bash bc binutils bindgen bison busybox-static ca-certificates cargo clang cpio diffutils
    dwarves ethtool flex gcc gcc-14 git iperf3 iproute2 iputils-ping kmod libc6-dev libelf-dev
    libssl-dev lld llvm make netbase netperf perl procps python3 python3-matplotlib rsync rust-clippy
    rust-src rustc rustfmt shellcheck squashfs-tools tcpdump xz-utils zstd
)
ROOT_PACKAGES_BACKPORTS=(qemu-system-x86)
GUEST_PACKAGES=(
    bpftool busybox-static ethtool iperf3 iproute2 iputils-ping kmod netbase netperf procps
    python3 socat tcpdump
)

# Free space that a complete cache folder takes, in MiB, when nothing of it exists.
CACHE_MIB=8000

check_machine() {
    ((EUID == 0)) || die "needs root (namespaces, mounts and packages), run it with sudo"
    local id='' version=''
    id=$(. /etc/os-release && printf '%s' "${ID-}")
    version=$(. /etc/os-release && printf '%s' "${VERSION_ID-}")
    [[ $id == debian && ($version == 12 || $version == 13) ]] ||
        die "supports Debian 12 and 13 on the machine that runs it, this is ${id:-unknown} ${version:-without a version}"
    [[ $(dpkg --print-architecture) == amd64 ]] ||
        die "supports amd64 machines, this one is $(dpkg --print-architecture)"
    [[ -c /dev/net/tun ]] || modprobe tun 2>/dev/null || true
    [[ -c /dev/net/tun ]] || die "needs tap devices, and this machine's kernel offers no /dev/net/tun"
    case $ARCH:$FLAVOUR in
    amd64:amd64 | amd64:cloud-amd64) ;;
    *) die "no ARCH=$ARCH FLAVOUR=$FLAVOUR, it knows ARCH=amd64 with FLAVOUR=amd64 or cloud-amd64" ;;
    esac
}

# The space still to be taken is that of a whole cache less what is there already.
check_space() {
    local have=0 free
    have=$(du -sm --exclude=results "$CACHE" | cut -f1)
    free=$(df --output=avail -m "$CACHE" | tail -n 1)
    ((have + free >= CACHE_MIB)) ||
        die "needs $(((CACHE_MIB - have) / 1024 + 1)) GiB free in $CACHE and finds $((free / 1024)) GiB, make room or name another folder with RING_NICS_CACHE="
}

# find_mirror: sets MIRROR to the one that this machine's own apt uses, in whichever form its
# sources are written.
find_mirror() {
    [[ -z ${MIRROR-} ]] || return 0
    local uri targets
    # shellcheck disable=SC2016 # apt expands these
    targets=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages')
    while read -r uri; do
        uri=${uri%/}
        case $uri in
        mirror+file:*) uri=$(grep -m1 -oE '^https?://[^[:space:]]+' "/${uri#mirror+file:*/}") || continue ;;
        esac
        case $uri in
        http://* | https://*)
            MIRROR=${uri%/}
            return
            ;;
        esac
    done < <(awk '$2 ~ /^(bookworm|trixie|oldstable|stable)$/ && $3 == "main" { print $1 }' <<<"$targets")
    die "finds no Debian mirror in this machine's apt sources, name one with MIRROR="
}

install_host_tools() {
    local missing=()
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
    ((${#missing[@]})) || return 0
    DEBIAN_FRONTEND=noninteractive follow "packages ${missing[*]}" "$CACHE/logs/host.log" bash -c \
        'apt-get update && apt-get install --yes --no-install-recommends "$@"' bash "${missing[@]}"
}

# check_mirror: the mirror answers; asked only when a stage is about to need it.
check_mirror() {
    local scratch
    rm -rf "$CACHE"/apt.*
    scratch=$(mktemp -d "$CACHE/apt.XXXXXX")
    mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR $SUITE main" >"$scratch/sources.list"
    if ! timeout 120 apt-get update --error-on=any \
        -o Dir::Etc::SourceList="$scratch/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$scratch/lists" -o Dir::Cache="$scratch/cache" \
        -o APT::Sandbox::User=root -o Acquire::Retries=1 >"$CACHE/logs/mirror.log" 2>&1; then
        rm -rf "$scratch"
        die "cannot reach the Debian mirror $MIRROR (see $CACHE/logs/mirror.log), check the network or name another with MIRROR="
    fi
    rm -rf "$scratch"
}

# debootstrap_tree TARGET PACKAGES [MMDEBSTRAP OPTION...]
debootstrap_tree() {
    local target=$1 packages=$2 proxy
    shift 2
    proxy=$(apt-config dump Acquire::http::Proxy --format '%v')
    contain rm -rf --one-file-system "$target.part"
    contain mmdebstrap --mode=root --variant=minbase --include="${packages// /,}" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --aptopt='Acquire::Retries "3"' --aptopt="Acquire::http::Proxy \"$proxy\"" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        "$@" "$SUITE" "$target.part" \
        "deb $MIRROR $SUITE main" "deb $MIRROR $SUITE-updates main" \
        "deb $MIRROR $SUITE-backports main"
}

make_root() {
    # shellcheck disable=SC2016 # mmdebstrap's shell expands $1
    debootstrap_tree "$CACHE/root" "${ROOT_PACKAGES[*]}" \
        --customize-hook='chroot "$1" apt-get install --yes -t '"$SUITE-backports ${ROOT_PACKAGES_BACKPORTS[*]}" \
        --customize-hook='chroot "$1" apt-get clean'
    rm -rf --one-file-system "$CACHE/root"
    mv "$CACHE/root.part" "$CACHE/root"
}

make_guest() {
    mkdir -p "$CACHE/guest"
    debootstrap_tree "$CACHE/guest/tree" "${GUEST_PACKAGES[*]}"
    inside mksquashfs /cache/guest/tree.part /cache/guest/root.squashfs.part \
        -noappend -no-progress -comp lz4 -e dev/* var/lib/apt/lists/* var/cache/*
    rm -rf --one-file-system "$CACHE/guest/tree.part"
    mv "$CACHE/guest/root.squashfs.part" "$CACHE/guest/root.squashfs"
}
