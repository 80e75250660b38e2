# SPDX-License-Identifier: GPL-2.0
#
# Kernel modules of this repository: ring_common.ko and one <name>_rs.ko per
# directory of drivers/. "make help" says more.

KDIR ?= /lib/modules/$(shell uname -r)/build

release := $(shell cat $(KDIR)/include/config/kernel.release 2>/dev/null)

# One directory of outputs per kernel: builds for several kernels live side by
# side and leave the sources alone.
MO ?= $(CURDIR)/build/$(release)

kbuild = +$(MAKE) -C $(KDIR) M=$(CURDIR) MO=$(abspath $(MO))
sources := $(shell find rust-common drivers -name '*.rs' -not -path '*/target/*')

modules: check-kdir
	$(kbuild) modules

# The distribution keeps its signing key: a module signed by nobody else is not
# signed at all.
modules_install: modules
	$(kbuild) CONFIG_MODULE_SIG_ALL= modules_install

# The module of the tests that loses memory on purpose.
leak: check-kdir
	+$(MAKE) -C $(KDIR) M=$(CURDIR)/tools/selftests/leak MO=$(abspath $(MO))/leak modules

clean:
	rm -rf build

fmt:
	@rustfmt $(sources)

fmt-check:
	@rustfmt --check $(sources)

clippy: check-kdir
	$(kbuild)/clippy CLIPPY=1 KRUSTFLAGS=-Dwarnings modules

w1: check-kdir
	$(kbuild)/w1 W=1 KCFLAGS=-Werror KRUSTFLAGS=-Dwarnings \
		CONFIG_OBJTOOL_WERROR=y modules

check-kdir:
	@test -n "$(release)" || { \
		echo "KDIR=$(KDIR) is no prepared kernel build directory." >&2; false; }
	@test -e $(KDIR)/rust/libkernel.rmeta || { \
		echo "KDIR=$(KDIR) lacks the kernel's Rust crates; scripts/setup builds such a directory." >&2; \
		false; }

help:
	@echo "  modules (default)  ring_common.ko and the drivers, for the kernel in KDIR"
	@echo "  modules_install    install them (INSTALL_MOD_PATH= and the like as in the kernel)"
	@echo "  leak               leak.ko, which loses memory on purpose, for tests"
	@echo "  clean              remove build/"
	@echo "  fmt, fmt-check     format the Rust sources, or only check them"
	@echo "  clippy             build with clippy, warnings are errors"
	@echo "  w1                 build with W=1, warnings are errors"
	@echo
	@echo "  KDIR=DIR  kernel build directory with Rust crates [$(KDIR)]"
	@echo "  MO=DIR    output directory [build/<kernel release>]"

.PHONY: modules modules_install leak clean fmt fmt-check clippy w1 check-kdir help
