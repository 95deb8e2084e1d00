// How texts and numbers are written for people.

/** A number of bytes for people: `182 MiB`. */
export function inMib(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}

/** A text as one word of a POSIX shell, such as a path in a printed command. It is quoted only where it must be. */
export function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Replaces each of the characters by an escape such as `\u001b`. `characters`: a pattern for one character, with the flag `g`. */
export function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
