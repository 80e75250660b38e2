# SPDX-License-Identifier: GPL-2.0
#
# Reads bindings.h after the preprocessor, then bindgen's output; turns the
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
}

# C: the tag of each structure and union, `{` being on the same line or the next.
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

# Rust from here on.
/^pub (struct|union) [A-Za-z0-9_]+/ {
	name = $3
	sub(/<.*/, "", name)
	# By the kernel's convention an untagged type is a typedef in _t.
	if (name in tag)
		c_type[name] = tag[name] " " name
	else if (name ~ /_t$/)
		c_type[name] = name
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
	subject = word[n]
	if (subject ~ /::/) {
		split(subject, part, "::")
		if (!(part[1] in c_type) || part[2] ~ /^_bitfield|__bindgen|^_address$/)
			next
		# bindgen appends an underscore to Rust's keywords.
		sub(/^type_$|^match_$|^priv_$/, substr(part[2], 1, length(part[2]) - 1), part[2])
		what = "offsetof(" c_type[part[1]] ", " part[2] ")"
	} else if (subject in c_type) {
		what = (word[1] == "Size" ? "sizeof(" : "_Alignof(") c_type[subject] ")"
	} else {
		next
	}
	printf "_Static_assert(%s == %s, \"%s\");\n", what, value, subject
}
