import { expect, test } from "vitest";
import { glibcVersion, loadProblem } from "../../../../src/engine/gpu/dawn.ts";

const debian = { platform: "linux", glibc: "2.36" } as const;

test.each([
  ["Error loading shared library ld-linux-x86-64.so.2", { ...debian, glibc: undefined }, /musl.*Debian/],
  [
    "/lib/libc.so.6: version `GLIBC_2.34' not found (required by dawn.node)",
    { ...debian, glibc: "2.31" },
    /needs glibc 2\.34 or later, but this system has 2\.31/,
  ],
  ["libX11.so.6: cannot open\nmore", debian, /^Dawn cannot be loaded here: libX11\.so\.6: cannot open$/],
  ["not a DLL", { platform: "win32", glibc: undefined } as const, /: not a DLL$/],
])("explains why Dawn could not be loaded: %s", (message, system, words) => {
  expect(loadProblem(message, system)).toMatch(words);
});

test.runIf(process.platform === "linux")("the version of glibc of this process is known", () => {
  expect(glibcVersion()).toMatch(/^\d+\.\d+/);
});
