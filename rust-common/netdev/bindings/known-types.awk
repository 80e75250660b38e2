# SPDX-License-Identifier: GPL-2.0
#
# Reads the bindings of the kernel crate and prints bindgen options that block
# each type known there in full, 100 names to an option. A structure with a
# placeholder for its only field is known by name only. Names of anonymous
# enums are numbered per run and mean nothing in another one.

function block(name)
{
	if (name ~ /^_bindgen_ty_/ || name ~ /^__Bindgen/ || name ~ /^__Incomplete/)
		return
	if (count++ % 100 == 0)
		printf "%s--blocklist-type %s", (count > 1 ? "\n" : ""), name
	else
		printf "|%s", name
}

pending && !/_address: u8|_unused: \[u8; 0\]/	{ block(pending) }
						{ pending = "" }
/^pub (struct|union) [A-Za-z0-9_]+ \{/		{ pending = $3 }
/^pub type [A-Za-z0-9_]+ =/			{ block($3) }
END						{ print "" }
