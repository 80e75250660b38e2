# SPDX-License-Identifier: GPL-2.0
"""Builds what the guests run and what serves them, into the cache folder."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from .common import REPOSITORY, SELFTESTS, Failure, Settings, processors

# What cargo and the kernel's make build.
SOURCES = ("drivers", "rust-common", "tools")
MODPROBE_CONFIGURATION = REPOSITORY / "scripts/modprobe.d/ring-nics.conf"


def run(log: pathlib.Path, *command, timeout=1800, **environment):
    """Runs a build step with its output in `log`; a failure shows the end of it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as output:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
            timeout=timeout,
            check=False,
        )
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-30:])
        raise Failure(f"{' '.join(command)} failed:\n{tail}")


def notice_changes(settings: Settings):
    """Makes cargo and make see every file that changed since the cache folder was used last. They look
    at times, and those of another clone of this repository may lie before its last build."""
    record = settings.cache / "stamps/contents.json"
    known = json.loads(record.read_text()) if record.exists() else {}
    contents = {}
    for top in SOURCES:
        for file in sorted((REPOSITORY / top).rglob("*")):
            if not file.is_file() or "target" in file.parts:
                continue
            name = str(file.relative_to(REPOSITORY))
            contents[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            if contents[name] != known.get(name):
                os.utime(file)
    part = record.with_suffix(".part")
    part.write_text(json.dumps(contents))
    part.rename(record)


def cargo(settings: Settings, log, folder, *command):
    """Runs cargo in a folder of the repository; its outputs stay out of the repository."""
    subcommand, *arguments = command
    manifest = REPOSITORY / folder / "Cargo.toml"
    target = settings.cache / "target" / folder.replace("/", "-")
    run(
        log,
        *("cargo", subcommand, "--locked", "--manifest-path", str(manifest), *arguments),
        CARGO_TARGET_DIR=str(target),
        CARGO_NET_OFFLINE="true",
    )


def make(settings: Settings, log, *targets, tree=REPOSITORY, output=None):
    """Runs the modules' make for the kernel under test, with the compiler that built it."""
    compiler = ("LLVM=-19",) if settings.debug else ()
    run(
        log,
        *("make", "-C", str(tree), f"-j{processors()}", f"KDIR={settings.build_tree}"),
        f"MO={output or settings.modules}",
        *compiler,
        *targets,
    )


def build_models(settings: Settings, log):
    cargo(settings, log, "tools/models", "build", "--release")


def build_plugin(settings: Settings, log):
    cargo(settings, log, "tools/insn-count", "build", "--release")


def build_modules(settings: Settings, log):
    make(settings, log, "modules", *(("leak",) if settings.debug else ()))


def build_foreign_modules(settings: Settings, log):
    """The same modules over another ring_common: one more comment in a copy of the sources."""
    copy = settings.foreign / "source"
    touched = pathlib.Path("rust-common/ring_common/ring_common.rs")
    (copy / touched).parent.mkdir(parents=True, exist_ok=True)
    options = ("--archive", "--delete", "--exclude=/.git", "--exclude=/build", f"--exclude=/{touched}")
    run(log, "rsync", *options, f"{REPOSITORY}/", f"{copy}/")
    text = (REPOSITORY / touched).read_text() + "\n// Another build.\n"
    if not (copy / touched).exists() or (copy / touched).read_text() != text:
        (copy / touched).write_text(text)
    make(settings, log, "modules", tree=copy, output=settings.foreign / "build")


def build_programs(log, folder: pathlib.Path):
    """Compiles the XDP programs of the tests, in a copy of their folder in the guest's disk."""
    for source in sorted(folder.glob("*.c")):
        run(
            log,
            *("clang", "--target=bpf", "-O2", "-g", "-Wall", "-Werror"),
            # For the headers of the kernel's interface, which are this machine's.
            f"-I/usr/include/{os.uname().machine}-linux-gnu",
            # The same path in each copy: the contents decide whether the disk is made again.
            f"-fdebug-prefix-map={folder}=.",
            *("-c", str(source), "-o", str(source.with_suffix(".o"))),
        )


def build_payload(settings: Settings, log, with_modules=True):
    """Makes the guest's disk of our own things: modules with the indexes that modprobe wants, and
    the programs of tools/selftests. Returns its path; unchanged contents are not made again."""
    work = settings.kernel / "payload"
    shutil.rmtree(work, ignore_errors=True)
    modules = pathlib.Path("usr/lib/modules", settings.release)
    tree = work / "tree"
    (tree / modules).mkdir(parents=True)
    shutil.copytree(SELFTESTS, tree / "opt/ring-nics")
    build_programs(log, tree / "opt/ring-nics/xdp")
    (tree / "usr/lib/modprobe.d").mkdir()
    shutil.copy(MODPROBE_CONFIGURATION, tree / "usr/lib/modprobe.d")
    if with_modules:
        install = (f"INSTALL_MOD_PATH={tree}/usr", "INSTALL_MOD_STRIP=1", "DEPMOD=true")
        make(settings, log, "modules_install", *install)
        foreign = tree / "opt/ring-nics/foreign"
        foreign.mkdir()
        for module in (settings.foreign / "build/drivers").rglob("*.ko"):
            shutil.copy(module, foreign)
        if settings.debug:
            shutil.copy(settings.modules / "leak/leak.ko", tree / modules)

    image = settings.kernel / f"payload-{content_hash(tree)}.squashfs"
    if image.exists():
        return image
    for old in settings.kernel.glob("payload-*.squashfs"):
        old.unlink()
    index = work / "index"
    run(log, "cp", "--archive", "--link", str(settings.kernel / "modules"), str(index))
    run(log, "cp", "--archive", f"{tree}/{modules}/.", str(index / modules))
    run(log, "depmod", "--basedir", str(index), settings.release)
    for file in (index / modules).glob("modules.*"):
        shutil.copy(file, tree / modules)
    part = image.with_suffix(".part")
    run(log, "mksquashfs", str(tree), str(part), "-noappend", "-no-progress", "-comp", "lz4")
    part.rename(image)
    shutil.rmtree(work)
    return image


def content_hash(tree: pathlib.Path):
    digest = hashlib.sha256()
    for file in sorted(tree.rglob("*")):
        if file.is_file() and not file.is_symlink():
            digest.update(f"{file.relative_to(tree)} {file.stat().st_mode}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
