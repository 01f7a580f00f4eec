/**
 * To be loaded before a program under Wine, whose symbolic links are reported as made and are not there. With this they
 * are refused, as Windows refuses them to users who have not been given the right to make them.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

function refusal(target, path) {
  const error = new Error(`EPERM: operation not permitted, symlink '${target}' -> '${path}'`);
  return Object.assign(error, { errno: -4048, code: "EPERM", syscall: "symlink", path: target, dest: path });
}

fs.symlinkSync = (target, path) => {
  throw refusal(target, path);
};
fs.symlink = (target, path, ...rest) => process.nextTick(rest.at(-1), refusal(target, path));
fs.promises.symlink = async (target, path) => {
  throw refusal(target, path);
};
syncBuiltinESMExports();
