/** A word of a POSIX shell, such as a path in a printed command: quoted where it has to be. */
export function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
