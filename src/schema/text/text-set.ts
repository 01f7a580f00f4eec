export interface TextSet {
  has(t: string): boolean;
  isEmpty(): boolean;
}
