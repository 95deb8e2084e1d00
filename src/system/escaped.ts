/** A text in which an escape such as `\u001b` stands for each of these characters, a class with the flag `g`. */
export function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
