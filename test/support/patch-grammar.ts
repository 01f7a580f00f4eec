/** A grammar for patches like the one that a coding agent sends with its tool for editing files. */
export const PATCH_GRAMMAR = String.raw`
start: head file+ foot
head: "*** Begin Patch" LF
foot: "*** End Patch" LF?

// One of three things can happen to a file.
file: added | deleted | updated
added: "*** Add File: " path LF new_line+
deleted: "*** Delete File: " path LF
updated: "*** Update File: " path LF moved? change?

path: /(.+)/
new_line: "+" /(.*)/ LF -> line
moved: "*** Move to: " path LF
change: (place | changed_line)+ last?
place: ("@@" | "@@ " /(.+)/) LF
changed_line: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of File" LF

%import common.LF
`;

export const PATCH = [
  "*** Begin Patch",
  "*** Add File: a b.ts",
  '+\tsay("\\n");',
  "+",
  "*** Update File: src/c.ts",
  "*** Move to: src/d.ts",
  "@@ class C",
  " keep “this” 🙂",
  "-old",
  "+new",
  "*** End of File",
  "*** Delete File: e.ts",
  "*** End Patch",
  "",
].join("\n");
