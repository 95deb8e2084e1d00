// Forms of texts and numbers in what people read.

/** A number of bytes for people: `182 MiB`. */
export function inMib(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}

/** A word of a POSIX shell, such as a path in a printed command: quoted where it has to be. */
export function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A text in which an escape such as `\u001b` stands for each of these characters, a class with the flag `g`. */
export function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
