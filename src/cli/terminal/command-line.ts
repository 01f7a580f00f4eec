/** Words that a shell takes as they are. */
const PLAIN = /^[\w@%+=:,./~-]+$/;

/** A command that can be copied into a shell: `daybreak` with these words. */
export function commandLine(words: readonly string[], platform: NodeJS.Platform = process.platform): string {
  return ["daybreak", ...words.map((word) => quoted(word, platform))].join(" ");
}

function quoted(word: string, platform: NodeJS.Platform): string {
  const plain = platform === "win32" ? word.replaceAll("\\", "/") : word;
  if (PLAIN.test(plain)) return word;
  return platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
