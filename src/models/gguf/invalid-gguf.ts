/** What is wrong with a GGUF file, in words that complete "… cannot be used: ". */
export class InvalidGguf extends Error {
  override readonly name = "InvalidGguf";
}
