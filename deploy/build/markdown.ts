// How the pages that programs write lay out text.

/** Breaks a text into lines of at most `width` characters, between words. A longer word has a line of its own. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** A list item in lines of at most `width` characters behind the mark. */
export function listItem(text: string, width: number): string[] {
  return wrapped(text, width).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))
}
