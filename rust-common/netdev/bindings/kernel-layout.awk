# SPDX-License-Identifier: GPL-2.0
#
# Keeps of bindgen's output the layout tests of the structures named in `types`.

BEGIN {
	split(types, names, " ")
	for (i in names)
		wanted[names[i]]
	print "// Generated from the kernel's headers; checked for this kernel."
}

/^const _: \(\) = \{/	{ block = ""; inside = 1 }
inside			{ block = block $0 "\n" }
inside && /"Size of /	{ split($0, quoted, "\""); name = substr(quoted[2], 9) }
/^};/ {
	if (inside && name in wanted)
		printf "%s", block
	inside = 0
}
