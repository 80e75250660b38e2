# SPDX-License-Identifier: GPL-2.0
"""Builds, unit tests and style: what needs no guest."""

import subprocess

from .. import build
from ..common import REPOSITORY, expect
from ..runner import host_test


@host_test(timeout=900)
def build_models(settings, log):
    build.build_models(settings, log)


@host_test(timeout=900)
def build_modules(settings, log):
    build.build_modules(settings, log)


@host_test(timeout=900)
def build_foreign_modules(settings, log):
    build.build_foreign_modules(settings, log)


@host_test(timeout=900)
def ring_core(settings, log):
    """Every state of small rings against a naive oracle, properties of large ones."""
    build.cargo(settings, log, "rust-common/ring_core", "test")


@host_test(timeout=600)
def driver_formats(settings, log):
    """What of the drivers needs no kernel: their formats."""
    for crate in sorted(REPOSITORY.glob("drivers/*/tests")):
        for command in (("test",), ("clippy", "--all-targets", "--", "-Dwarnings")):
            build.cargo(settings, log, str(crate.relative_to(REPOSITORY)), *command)


@host_test(timeout=900)
def models(settings, log):
    """The models' own tests; each violation rule is provoked."""
    build.cargo(settings, log, "tools/models", "test", "--release", "--workspace")


@host_test(timeout=600)
def models_clippy(settings, log):
    build.cargo(
        settings, log, "tools/models", "clippy", "--workspace", "--all-targets", "--", "-Dwarnings"
    )


@host_test(timeout=600)
def insn_count(settings, log):
    """The plugin of QEMU that counts instructions, as far as it needs no QEMU."""
    for command in (("test",), ("clippy", "--all-targets", "--", "-Dwarnings")):
        build.cargo(settings, log, "tools/insn-count", *command)


@host_test(timeout=600)
def ring_core_clippy(settings, log):
    build.cargo(settings, log, "rust-common/ring_core", "clippy", "--all-targets", "--", "-Dwarnings")


@host_test()
def rustfmt(settings, log):
    build.make(settings, log, "fmt-check")
    crates = ("tools/models", "tools/insn-count", "rust-common/ring_core", "drivers/*/tests")
    for manifest in (path for crate in crates for path in REPOSITORY.glob(f"{crate}/Cargo.toml")):
        build.run(log, "cargo", "fmt", "--all", "--check", "--manifest-path", str(manifest))


@host_test(timeout=600)
def modules_clippy(settings, log):
    build.make(settings, log, "clippy")


@host_test(timeout=600)
def modules_w1(settings, log):
    build.make(settings, log, "w1")


@host_test()
def shellcheck(_settings, log):
    guest = REPOSITORY / "tools/selftests/guest"
    files = [REPOSITORY / ".ci/run", guest / "init", guest / "initrd-init"]
    for pattern in ("*", "lib/*", "inside/*"):
        files += [path for path in (REPOSITORY / "scripts").glob(pattern) if path.is_file()]
    build.run(log, "shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *map(str, files))


@host_test()
def licences(_settings, _log):
    """Each source file names its licence."""
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, check=True, text=True
    ).stdout.split("\0")
    suffixes = (".rs", ".c", ".h", ".py", ".sh", "Kbuild", "Makefile")
    missing = [
        name
        for name in listed
        if name.endswith(suffixes)
        and "SPDX-License-Identifier: GPL-2.0" not in (REPOSITORY / name).read_text()[:200]
    ]
    expect(not missing, f"no SPDX line in {', '.join(missing)}")
