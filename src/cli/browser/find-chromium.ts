import path from "node:path";
import { findInPath, isProgram } from "../find-program.ts";

/** What Chromium and browsers made of it are called where programs are searched. */
const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge"];

const MAC_APPS = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

const WINDOWS_PROGRAMS = ["Google/Chrome/Application/chrome.exe", "Microsoft/Edge/Application/msedge.exe"];

/** Path of an installed Chromium, Chrome or Edge; the variable CHROMIUM names another. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { CHROMIUM: named } = env;
  if (named) return isProgram(named) ? named : undefined;
  return findInPath(NAMES, env) ?? [...MAC_APPS, ...inProgramFolders(env)].find(isProgram);
}

function inProgramFolders(env: NodeJS.ProcessEnv): string[] {
  const folders = [env["PROGRAMFILES"], env["PROGRAMFILES(X86)"], env["LOCALAPPDATA"]];
  return folders.flatMap((folder) =>
    folder === undefined ? [] : WINDOWS_PROGRAMS.map((program) => path.join(folder, program)),
  );
}
