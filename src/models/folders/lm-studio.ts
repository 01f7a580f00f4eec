import { realpath } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { readSmallFile } from "./read-small-file.ts";

/** Names LM Studio's home, where its user has moved it or an early version has made it. */
const POINTER = ".lmstudio-home-pointer";

const settingsSchema = z.object({ downloadsFolder: z.string() });

/** Where LM Studio may keep its models, the likeliest first. */
export async function lmStudioFolders(home: string): Promise<string[]> {
  const pointer = (await textOf(home, POINTER)).trim();
  const homes = [pointer, path.join(home, ".lmstudio"), path.join(home, ".cache", "lm-studio")];
  const folders = await Promise.all(
    homes.map(async (each) => [await chosenFolder(each), path.join(each, "models")]),
  );
  return [...new Set(folders.flat().filter((folder) => path.isAbsolute(folder)))];
}

/** The folder of models that the user has chosen in the settings; empty: none. */
async function chosenFolder(home: string): Promise<string> {
  try {
    return settingsSchema.parse(JSON.parse(await textOf(home, "settings.json"))).downloadsFolder;
  } catch {
    return "";
  }
}

/** The text of a file in a folder; empty when it cannot be had. */
async function textOf(folder: string, name: string): Promise<string> {
  try {
    return await readSmallFile(await realpath(folder), path.join(folder, name));
  } catch {
    return "";
  }
}
