# SPDX-License-Identifier: GPL-2.0
#
# Reads bindings.h after the preprocessor, then output of bindgen; turns the
# layout tests in the latter into C assertions. rustc checks the tests against
# its own layout, the kernel's C compiler checks the assertions: both then
# agree with the clang that bindgen used.
#
# Left out is what C cannot name from outside: anonymous types and members,
# types nested in another one (bindgen prefixes their names), bit-fields.

BEGIN {
	print "// SPDX-License-Identifier: GPL-2.0"
	print "/* Generated from the bindings; checked for this kernel. */"
	print "#include \"bindings.h\"\n"

	split("as async await box crate dyn fn impl in let loop macro match mod move " \
	      "mut priv proc pub ref self super trait try type unsafe use where yield",
	      words, " ")
	for (i in words)
		keyword[words[i]]
}

# C comes first: the tag of each structure and union, `{` being on the same line or the next.
FILENAME == "-" {
	line = before $0
	before = line ~ /(struct|union) +[A-Za-z0-9_]+ *$/ ? line " " : ""
	while (match(line, /(struct|union) +[A-Za-z0-9_]+ *\{/)) {
		split(substr(line, RSTART, RLENGTH), word, /[ {]+/)
		tag[word[2]] = word[1]
		line = substr(line, RSTART + RLENGTH)
	}
	next
}

# The type as C spells it, or nothing. By the kernel's convention an untagged
# type is a typedef in _t.
function c_type(name)
{
	if (name in tag)
		return tag[name] " " name
	return name ~ /_t$/ ? name : ""
}

# bindgen appends an underscore to names that are keywords of Rust.
function c_field(name,    stem)
{
	stem = substr(name, 1, length(name) - 1)
	return name == stem "_" && stem in keyword ? stem : name
}

# bindgen breaks long tests over several lines.
/^ *\["(Size|Alignment|Offset)/, /;$/ {
	test = test $0
	if ($0 !~ /;$/)
		next
	split(test, quoted, "\"")
	match(test, /- *[0-9]+usize/)
	value = substr(test, RSTART + 1, RLENGTH - 6)
	gsub(/ /, "", value)
	test = ""

	n = split(quoted[2], word, " ")
	split(word[n], part, "::")
	type = c_type(part[1])
	field = part[2]
	if (!type || field ~ /^_bitfield|__bindgen|^_address$/)
		next
	if (word[1] == "Offset")
		what = "offsetof(" type ", " c_field(field) ")"
	else
		what = (word[1] == "Size" ? "sizeof(" : "_Alignof(") type ")"
	printf "_Static_assert(%s == %s, \"%s\");\n", what, value, word[n]
}
