import type { Platform } from "./platform-manifests.ts";

const LAUNCHER = "dist/src/launch/daybreak.mjs";

/** The program that starts an unpacked archive, with the Node in it, from wherever a link to it is. */
export function startScript({ platform, node, nodeBinary }: Platform): { name: string; text: string } {
  const binary = `node_modules/${node}/${nodeBinary}`;
  return platform === "win32"
    ? { name: "daybreak.cmd", text: batch(binary) }
    : { name: "daybreak", text: shell(binary) };
}

function shell(binary: string): string {
  return `#!/bin/sh
# Starts Daybreak with the Node that came with it. A link to this file does, too.
self=$0
while [ -h "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
here=$(cd "$(dirname "$self")" && pwd -P) || exit 1
exec "$here/${binary}" "$here/${LAUNCHER}" "$@"
`;
}

function batch(binary: string): string {
  return ["@echo off", `${beside(binary)} ${beside(LAUNCHER)} %*`, ""].join("\r\n");
}

/** As a batch file names a file in its own folder. */
function beside(file: string): string {
  return `"%~dp0${file.replaceAll("/", "\\")}"`;
}
