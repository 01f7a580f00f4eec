const DIGIT = "[0-9]";
const LETTER = "[A-Za-z]";
const INT = `${DIGIT}+`;
const DECIMAL = String.raw`(?:${INT}\.(?:${INT})?|\.${INT})`;
const FLOAT = `(?:${INT}[eE][+-]?${INT}|${DECIMAL}(?:[eE][+-]?${INT})?)`;
const NUMBER = `(?:${FLOAT}|${INT})`;

/** The terminals that a Lark grammar imports from `common`, as regular expressions. */
export const COMMON_TERMINALS: Readonly<Record<string, string>> = {
  DIGIT,
  HEXDIGIT: "[0-9A-Fa-f]",
  INT,
  SIGNED_INT: `[+-]?${INT}`,
  DECIMAL,
  FLOAT,
  SIGNED_FLOAT: `[+-]?${FLOAT}`,
  NUMBER,
  SIGNED_NUMBER: `[+-]?${NUMBER}`,
  ESCAPED_STRING: String.raw`"(?:[^"\\\n]|\\[^\n])*"`,
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER,
  WORD: `${LETTER}+`,
  CNAME: "[A-Za-z_][A-Za-z0-9_]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
  SH_COMMENT: "#[^\\n]*",
  CPP_COMMENT: "//[^\\n]*",
};
